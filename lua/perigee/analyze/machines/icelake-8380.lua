-- Intel Xeon Platinum 8380 (Ice Lake), one socket.
--
-- Sources:
--   cores, clocks, L3, memory   Intel's product specifications (ARK), "Intel Xeon Platinum 8380 Processor": 40 cores,
--                               2.30 GHz base, 60 MB cache, 8 channels of DDR4-3200
--   turbo, L2                   AnandTech, "Intel 3rd Gen Xeon Scalable (Ice Lake SP) Review", 6 April 2021: 3.0 GHz on all
--                               cores, 1.25 MB of L2 for each core
--   operations                  two 512-bit units in each core. fma: 2 x 16 lanes x 2 operations. vpdpbusd: 2 x 64 products x 2.
--                               Ice Lake servers have no BF16 instructions
-- Assumed, because no specification says it:
--   - The caches have the bandwidths that kernels/AMX.md measured on a later core.
--   - Reading reaches 80 % of what the channels can transfer.
--   - A barrier of all cores takes 2 microseconds.
return {
  name = "Intel Xeon Platinum 8380",
  isa = "avx512vnni",
  cores = 40,
  clock = { base = 2.3e9, turbo = 3.0e9 },
  per_cycle = { f32 = 64, int8 = 256 },
  cache = { l2 = 1.25 * 2 ^ 20, l3 = 60 * 2 ^ 20 },
  bytes_per_cycle = { l2 = 45, l3 = 8 },
  barrier = 2e-6,
  memory = { channels = 8, transfers = 3200e6, share = 0.8 },
}
