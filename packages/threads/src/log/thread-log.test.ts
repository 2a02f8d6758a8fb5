import { describe, expect, test } from 'vitest'
import { agentTurn, response, text, thread, userTurn } from '../../test/samples.ts'
import { parseThread, stringifyThread } from '../document/thread-text.ts'
import { LogConflictError, LogCorruptError, openThreadLog } from './thread-log.ts'
import type { Thread, Turn } from '../document/thread.ts'
import { MemoryLogStorage } from './log-storage.ts'

const sample = thread([
  userTurn('Hello', 0),
  agentTurn('ada', [response('ada', 1, text('Grüße 🌍\n'))]),
  userTurn('Bye', 10),
])
const { turns: _turns, updated_at: _time, ...head }: Thread = sample

async function written(turns: readonly Turn[] = sample.turns): Promise<Uint8Array> {
  const storage = new MemoryLogStorage()
  const log = await openThreadLog(storage, { thread: head })
  for (const turn of turns) await log.append(turn)
  return storage.read()
}

describe('the thread log', () => {
  test('gives back what was appended, one turn a line', async () => {
    const bytes = await written()
    const lines = new TextDecoder().decode(bytes).split('\n')
    expect(lines).toHaveLength(5)
    expect(lines.slice(0, 4).map((line) => Object.keys(JSON.parse(line) as object))).toEqual(
      Array.from({ length: 4 }, () => ['sum', 'rec']),
    )
    const log = await openThreadLog(new MemoryLogStorage(bytes))
    expect(log.thread()).toEqual({
      ...sample,
      updated_at: sample.turns.at(-1)!['submitted_at' as never],
    })
    expect(log.turn(-1)).toEqual(sample.turns[2])
    expect(log.turn(3)).toBeUndefined()
  })

  test('a file cut at any byte opens with the turns that were whole', async () => {
    const bytes = await written()
    const ends = [...bytes.keys()].filter((at) => bytes[at] === 0x0a)
    for (let size = 0; size <= bytes.length; size++) {
      const storage = new MemoryLogStorage(bytes.subarray(0, size))
      const whole = ends.filter((end) => size >= end).length
      const log = await openThreadLog(storage, { thread: head })
      expect(log.length).toBe(Math.max(0, whole - 1))
      expect(log.recoveredBytes).toBe(whole === 0 ? size : Math.max(0, size - ends[whole - 1]! - 1))
      // And it goes on from there.
      await log.append(sample.turns[0]!)
      const again = await openThreadLog(storage)
      expect(again.turn(-1)).toEqual(sample.turns[0])
      expect(again.length).toBe(Math.max(0, whole - 1) + 1)
    }
  })

  test('no changed byte goes unnoticed, and none is taken for a torn tail', async () => {
    const bytes = await written()
    for (let at = 0; at < bytes.length - 1; at++) {
      const damaged = bytes.slice()
      damaged[at] = damaged[at]! ^ 0x01
      await expect(openThreadLog(new MemoryLogStorage(damaged)), `byte ${at}`).rejects.toThrow(
        LogCorruptError,
      )
    }
  })

  test('a file that is not the beginning of a log is refused and stays byte for byte', async () => {
    const line = new TextDecoder().decode((await written([])).subarray(0, -1))
    const files = [
      JSON.stringify(sample),
      'my shopping list',
      '\0\0\0\0',
      '{"sum":"0000zzzz","rec":{"turn',
      '{"sum":"00000000","rest":{"turn',
      '{"sum":"00000000","rec":{"turn":{}}}', // a whole line, so its sum is wrong
      `${line}\nmy shopping list`,
      `${line}\n{"sum":"00000000","rec":{"turn":{}}}`,
    ]
    for (const file of files) {
      const storage = new MemoryLogStorage(new TextEncoder().encode(file))
      for (const options of [{}, { thread: head }]) {
        await expect(openThreadLog(storage, options), file).rejects.toThrow(LogCorruptError)
        expect(new TextDecoder().decode(storage.read())).toBe(file)
      }
      const log = await openThreadLog(storage, { thread: head, repair: true })
      expect(log.thread().thread_id).toBe(sample.thread_id)
    }
  })

  test('nothing is cut off when no thread is given to begin the log with', async () => {
    const torn = (await written()).subarray(0, 60)
    const damaged = new TextEncoder().encode('my shopping list\n')
    for (const bytes of [torn, damaged]) {
      const storage = new MemoryLogStorage(bytes)
      const opened = openThreadLog(storage, { repair: true })
      await expect(opened).rejects.toMatchObject({ code: 'LOG_EMPTY' })
      expect(storage.read()).toEqual(bytes)
    }
  })

  test('a line that is missing, doubled or moved is damage', async () => {
    const lines = new TextDecoder()
      .decode(await written())
      .split('\n')
      .slice(0, 4)
    const orders = [
      [0, 2, 3],
      [0, 1, 1, 2, 3],
      [0, 2, 1, 3],
    ]
    for (const order of orders) {
      const text = order.map((index) => `${lines[index]}\n`).join('')
      const storage = new MemoryLogStorage(new TextEncoder().encode(text))
      await expect(openThreadLog(storage)).rejects.toMatchObject({ code: 'LOG_CORRUPT' })
    }
  })

  test('repair keeps the lines before the damage', async () => {
    const bytes = await written()
    const second = bytes.indexOf(0x0a, bytes.indexOf(0x0a) + 1) + 1
    bytes[second + 40] = 0x20
    const storage = new MemoryLogStorage(bytes)
    const log = await openThreadLog(storage, { repair: true })
    expect(log.thread().turns).toEqual(sample.turns.slice(0, 1))
    expect(log.recoveredBytes).toBe(bytes.length - second)
    expect(storage.read()).toHaveLength(second)
  })

  test('an append with the wrong length writes nothing', async () => {
    const storage = new MemoryLogStorage(await written())
    const before = storage.read()
    const log = await openThreadLog(storage)
    const conflict = log.append(sample.turns[0]!, { expectedLength: 2 })
    await expect(conflict).rejects.toMatchObject({ code: 'LOG_CONFLICT', expected: 2, actual: 3 })
    expect(storage.read()).toEqual(before)
    expect(await log.append(sample.turns[0]!, { expectedLength: 3 })).toBe(4)
  })

  test('of two that race with the same expectation one wins', async () => {
    const log = await openThreadLog(new MemoryLogStorage(await written()))
    const results = await Promise.allSettled(
      [0, 1, 2].map(() => log.append(sample.turns[0]!, { expectedLength: 3 })),
    )
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(log.length).toBe(4)
  })

  test('a second writer of the same storage is noticed', async () => {
    const storage = new MemoryLogStorage(await written())
    const [one, two] = [await openThreadLog(storage), await openThreadLog(storage)]
    await one.append(sample.turns[0]!)
    await expect(two.append(sample.turns[1]!)).rejects.toThrow(LogConflictError)
    expect((await openThreadLog(storage)).length).toBe(4)
  })

  test('number text and unknown fields survive', async () => {
    const source = stringifyThread(sample).replace(
      '"content":"Bye"',
      '"content":"Bye","weight":18.0,"big":12345678901234567890',
    )
    const parsed = parseThread(source)
    const log = await openThreadLog(new MemoryLogStorage(await written(parsed.turns)))
    expect(stringifyThread(log.thread())).toContain('"weight":18.0,"big":12345678901234567890')
  })

  test('the head can change without touching a turn', async () => {
    const storage = new MemoryLogStorage(await written())
    const log = await openThreadLog(storage)
    await log.update({ ...head, title: 'Renamed' })
    const again = await openThreadLog(storage)
    expect(again.thread()).toMatchObject({ title: 'Renamed', turns: sample.turns })
  })

  test('an empty log needs a thread to begin with', async () => {
    await expect(openThreadLog(new MemoryLogStorage())).rejects.toMatchObject({ code: 'LOG_EMPTY' })
  })
})
