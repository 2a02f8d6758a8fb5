import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seededRandom, SkeinError } from '@skein/base'
import { calls, says, scripted } from '@skein/ai/testing'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  sqliteStore,
} from '../../src/index.ts'

const SCALE = process.env['SKEIN_DEEP'] ? 10 : 1
const PAGE = 4096
const folder = mkdtempSync(join(tmpdir(), 'skein-damage-'))
const random = seededRandom(Number(process.env['SKEIN_SEED'] ?? 14))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Threads with their events as text. */
type Logs = ReadonlyMap<string, readonly string[]>

/** A store as it is in the middle of its life: the main file alone, or with a log of writes beside it. */
interface Image {
  readonly main: Buffer
  readonly wal: Buffer | undefined
  readonly logs: Logs
}
let closed: Image
let open: Image

beforeAll(async () => {
  const note = defineTool({
    name: 'note',
    description: 'Takes a note.',
    risk: 'write_low_risk',
    execute: () => 'A note that is long enough to be worth damaging. '.repeat(5),
  })
  const model = scripted(({ messages }) =>
    messages.at(-1)?.type === 'user' ? calls('note', {}) : says('That is done.'),
  )
  const prompt = definePrompt({ name: 'desk', prompt: 'Help.', model, tools: [note] })
  const path = join(folder, 'skein.db')
  const options = {
    agents: [defineAgent({ name: 'desk', sideA: { prompt } })],
    secretKey: new Uint8Array(32).fill(9),
  }
  const fill = async (turns: number, copy?: () => void): Promise<void> => {
    const runtime = await createRuntime({ ...options, folder })
    await runtime.start()
    for (let thread = 0; thread < 4; thread++) {
      const { id } = await runtime.threads.create({ agent: 'desk', title: `Thread ${thread}` })
      for (let turn = 0; turn < turns; turn++) await runtime.threads.run(id, `Message ${turn}`)
    }
    await runtime.idle()
    copy?.()
    await runtime.stop()
  }
  await fill(12)
  closed = { main: readFileSync(path), wal: undefined, logs: await read(path) }
  const copies = { main: join(folder, 'copy.db'), wal: join(folder, 'copy.db-wal') }
  await fill(6, () => {
    copyFileSync(path, copies.main)
    copyFileSync(`${path}-wal`, copies.wal)
  })
  const [main, wal] = [readFileSync(copies.main), readFileSync(copies.wal)]
  open = { main, wal, logs: await read(path) }
}, 60_000)

/** Everything that is in a store, read as a program reads it. */
async function read(path: string): Promise<Logs> {
  const store = sqliteStore({ path })
  try {
    const logs = new Map<string, string[]>()
    for (const { id } of await store.list({ limit: 1000 })) {
      const events = await store.events(id)
      logs.set(
        id,
        events.map((event) => JSON.stringify(event)),
      )
    }
    return logs
  } finally {
    await store.close()
  }
}

type Outcome = 'identical' | 'prefix' | 'refused'

/** Writes a damaged copy, reads it, and says how it compares. Throws when damage went unnoticed. */
async function judge({ main, wal, logs }: Image, what: string): Promise<Outcome> {
  const place = mkdtempSync(join(folder, 'case-'))
  const path = join(place, 'skein.db')
  writeFileSync(path, main, { mode: 0o600 })
  if (wal) writeFileSync(`${path}-wal`, wal, { mode: 0o600 })
  try {
    const after = await read(path).catch((error: unknown) => {
      if (!SkeinError.is(error)) throw new Error(`${what}: ${String(error)}`, { cause: error })
      expect(error.code, `${what}: ${error.message}`).toBe('STORE_CORRUPT')
      expect(error.hint, what).toBeTruthy()
      return undefined
    })
    return after ? compare(logs, after, what) : 'refused'
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

function compare(before: Logs, after: Logs, what: string): Outcome {
  let isShorter = after.size < before.size
  for (const [id, events] of after) {
    const known = before.get(id)
    if (!known) throw new Error(`${what}: thread ${id} was never there.`)
    for (const [index, event] of events.entries())
      if (event !== known[index])
        throw new Error(
          `${what}: event ${index + 1} of ${id} reads back changed: ${event.slice(0, 200)}`,
        )
    isShorter ||= events.length < known.length
  }
  return isShorter ? 'prefix' : 'identical'
}

/** Judges so many damages; counts what became of them. */
async function judgeAll(
  times: number,
  one: (time: number) => Promise<Outcome>,
): Promise<Readonly<Record<Outcome, number>>> {
  const outcomes = { identical: 0, prefix: 0, refused: 0 }
  for (let time = 0; time < times * SCALE; time++) outcomes[await one(time)]++
  expect(outcomes.identical + outcomes.prefix + outcomes.refused).toBe(times * SCALE)
  return outcomes
}

const below = (max: number): number => Math.trunc(random() * max)

function flipped(bytes: Buffer, flips: number): Buffer {
  const copy = Buffer.from(bytes)
  for (let flip = 0; flip < flips; flip++) copy[below(copy.length)]! ^= 1 << below(8)
  return copy
}

/** Changes a letter inside a text that stands in the file: what no structure of the database notices. */
function misspelt(bytes: Buffer): Buffer {
  const places: number[] = []
  for (const text of ['That is done.', 'worth damaging', 'Message ', '"type":"']) {
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) places.push(at)
  }
  const copy = Buffer.from(bytes)
  copy[places[below(places.length)]! + 2]! ^= 1
  return copy
}

function zeroed(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  const from = below(copy.length / PAGE) * PAGE
  return copy.fill(0, from, Math.min(copy.length, from + PAGE * (1 + below(3))))
}

const cut = (bytes: Buffer): Buffer => bytes.subarray(0, 1 + below(bytes.length - 1))

describe('a damaged store is refused, or read back as it was; never as something else', () => {
  test('undamaged, it reads back identical', async () => {
    expect(closed.logs.size).toBe(4)
    expect(await judge(closed, 'undamaged')).toBe('identical')
    expect(await judge(open, 'undamaged with a log of writes')).toBe('identical')
  })

  const damages = {
    truncated: [cut, 22],
    'with pages of zeros': [zeroed, 18],
    'with one flipped bit': [(bytes: Buffer) => flipped(bytes, 1), 60],
    'with a hundred flipped bits': [(bytes: Buffer) => flipped(bytes, 100), 10],
    'with a changed letter in a text': [misspelt, 20],
    'of random bytes': [
      (bytes: Buffer) => Buffer.from(Array.from({ length: bytes.length }, () => below(256))),
      2,
    ],
    empty: [() => Buffer.alloc(0), 1],
    'with rubbish at its end': [
      (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(PAGE * 2, 'x')]),
      1,
    ],
  } as const

  test.each(Object.keys(damages) as (keyof typeof damages)[])(
    'the main file %s',
    { timeout: 120_000 },
    async (name) => {
      const [damage, times] = damages[name]
      const outcomes = await judgeAll(times, (time) =>
        judge({ ...closed, main: damage(closed.main) }, `${name}, ${time}`),
      )
      // Some of these texts stand in free pages or in copies that are not read.
      if (name === 'with a changed letter in a text')
        expect(outcomes).toMatchObject({ prefix: 0, refused: expect.toSatisfy((n) => n >= 10) })
    },
  )

  const wals = {
    truncated: [cut, 14],
    'with one flipped bit': [(bytes: Buffer) => flipped(bytes, 1), 14],
    'with pages of zeros': [zeroed, 8],
    'with a changed letter in a text': [misspelt, 8],
    missing: [() => undefined, 1],
  } as const

  test.each(Object.keys(wals) as (keyof typeof wals)[])(
    'the log of writes %s',
    { timeout: 120_000 },
    async (name) => {
      const [damage, times] = wals[name]
      await judgeAll(times, (time) =>
        judge({ ...open, wal: damage(open.wal!) }, `${name}, ${time}`),
      )
    },
  )
})

test('a runtime on a damaged store says so, with the code, and does not hang', async () => {
  const place = mkdtempSync(join(folder, 'runtime-'))
  const body = Buffer.from(closed.main)
  body.fill(0, PAGE, PAGE * 8)
  writeFileSync(join(place, 'skein.db'), body, { mode: 0o600 })
  const work = async (): Promise<unknown> => {
    const prompt = definePrompt({ name: 'desk', prompt: 'Help.', model: scripted(() => says('x')) })
    const agents = [defineAgent({ name: 'desk', sideA: { prompt } })]
    const runtime = await createRuntime({ agents, folder: place, secretKey: new Uint8Array(32) })
    try {
      await runtime.start()
      const heads = await runtime.threads.list()
      return await Promise.all(heads.map(({ id }) => runtime.threads.events(id)))
    } finally {
      await runtime.stop({ graceMs: 0 }).catch(() => undefined)
    }
  }
  await expect(work()).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
})
