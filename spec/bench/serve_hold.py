"""Requests beside connections that hold on to the server: idle ones, slow ones, and half of a request.

    serve_hold.py PORT [IDLE] [SLOW] [HALF]      default: 10000 idle, 100 slow, 100 half-open

Idle connections send nothing. Slow clients send their request a byte at a time. Half-open ones send half of a body and wait.
Meanwhile 500 requests are sent one after another; the times of these are printed, and any failure ends the script with status 1.
"""

import asyncio
import json
import sys
import time

PORT = int(sys.argv[1])
IDLE, SLOW, HALF = (int(a) for a in (sys.argv[2:] + ["10000", "100", "100"][len(sys.argv) - 2:]))
BODY = json.dumps({"inputs": "a text of some words"}).encode()
REQUEST = b"POST /embed HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)


async def connect():
    return await asyncio.open_connection("127.0.0.1", PORT)


async def slow():
    reader, writer = await connect()
    for i in range(len(REQUEST)):
        writer.write(REQUEST[i:i + 1])
        await writer.drain()
        await asyncio.sleep(0.05)
    return b" 200 " in await reader.readline()


async def one():
    reader, writer = await connect()
    began = time.perf_counter()
    writer.write(REQUEST)
    line = await reader.readline()
    writer.close()
    return time.perf_counter() - began if b" 200 " in line else None


async def main():
    held = []
    for _ in range(IDLE // 100):
        held += await asyncio.gather(*(connect() for _ in range(100)))
    for _ in range(HALF):
        pair = await connect()
        pair[1].write(REQUEST[:-20])
        held.append(pair)
    slow_ones = [asyncio.create_task(slow()) for _ in range(SLOW)]
    times = [await one() for _ in range(500)]
    answered = await asyncio.gather(*slow_ones)
    failed = times.count(None) + answered.count(False)
    times = sorted(t for t in times if t is not None)
    print("%d connections held; 500 requests: p50 %.2f ms, p99 %.2f ms; %d slow clients answered; %d failed" % (
        len(held), 1000 * times[len(times) // 2], 1000 * times[int(len(times) * 0.99)], sum(answered), failed))
    return failed


sys.exit(asyncio.run(main()) > 0)
