-- Intel Xeon 6980P (Granite Rapids), one socket with MRDIMMs.
--
-- Sources:
--   cores, clocks, L3, memory   Intel's product specifications (ARK), "Intel Xeon 6980P Processor": 128 cores, 2.0 GHz base,
--                               504 MB cache, 12 channels of DDR5-6400 or MRDIMM-8800; 3.2 GHz on all cores: Hardwareluxx,
--                               "Granite Rapids mit 96 Kernen im Test", September 2024
--   L2                          TechPowerUp, "Intel Granite Rapids-UCC powering Xeon 6 6980P detailed", 25 September 2024: 2 MB
--   operations                  AMX: 2048 INT8 or 1024 BF16 operations in a cycle (Intel, "Accelerate Artificial Intelligence
--                               Workloads with Intel Advanced Matrix Extensions"). FP32: two 512-bit fma units
--   caches' bandwidths          measured on Granite Rapids: kernels/AMX.md (44 to 47 and 7 to 8 bytes a cycle)
--   efficiency                  share of the peak that INT8 linears reach: kernels/AMX.md, `make model-amx`, mean over the
--                               weights of the table
-- Assumed, because no specification says it: reading reaches 80 % of what the channels can transfer; a barrier of all cores takes
-- 2 microseconds.
return {
  name = "Intel Xeon 6980P",
  isa = "amx",
  cores = 128,
  clock = { base = 2.0e9, turbo = 3.2e9 },
  per_cycle = { f32 = 64, bf16 = 1024, int8 = 2048 },
  cache = { l2 = 2 * 2 ^ 20, l3 = 504 * 2 ^ 20 },
  bytes_per_cycle = { l2 = 45, l3 = 8 },
  barrier = 2e-6,
  memory = { channels = 12, transfers = 8800e6, share = 0.8 },
  efficiency = { int8 = 0.41 },
}
