/**
 * Every framework × every way an approval can go, with the framework's real runner: one approval has one
 * effect, and the text that is delivered says what happened.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { manualClock } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { generateKey, memorySpent } from '../src/approvals/index.ts'
import { memoryLog, verifyLog } from '../src/audit/index.ts'
import { type AuditLog, memoryPayloads } from '../src/index.ts'
import { type App, frameworks, type Outcome, type Script, type World } from './apps.ts'

/** The model's last word: what the results of its calls say. */
const summary = (results: readonly string[]): { text: string } => ({
  text: results
    .map((text) => {
      const found = /W-\d/.exec(text)?.[0]
      return text.includes('ok') && found ? `Reversed ${found}.` : 'A reversal did not happen.'
    })
    .join(' '),
})

const once: Script = (results) => (results.length === 0 ? { wires: ['W-1'] } : summary(results))
const both: Script = (results) =>
  results.length === 0 ? { wires: ['W-1', 'W-2'] } : summary(results)
const twice: Script = (results) =>
  results.length < 2 ? { wires: [`W-${results.length + 1}`] } : summary(results)

interface Scene {
  readonly script: Script
  readonly play: (world: World, open: () => App) => Promise<Outcome>
  readonly effects: readonly string[]
}

/** Answers until the application has its text; calls of one message may be asked for one by one. */
async function answerAll(
  open: () => App,
  first: Outcome,
  decide: (wire: string) => boolean,
): Promise<Outcome> {
  let outcome = first
  for (let round = 0; outcome.waiting.length > 0; round++) {
    if (round > 3) throw new Error('it waits again and again')
    outcome = await open().answer(outcome.waiting, ({ action }) => decide(wireOf(action.args)))
  }
  return outcome
}

const wireOf = (args: unknown): string => (args as { wire: string }).wire

const scenes: Record<string, Scene> = {
  approve: {
    script: once,
    play: async (_world, open) => answerAll(open, await open().start(), () => true),
    effects: ['reverse W-1'],
  },
  deny: {
    script: once,
    play: async (_world, open) => answerAll(open, await open().start(), () => false),
    effects: [],
  },
  // Edited arguments are a refusal and a new call with its own approval.
  edit: {
    script: twice,
    play: async (_world, open) => answerAll(open, await open().start(), (wire) => wire === 'W-2'),
    effects: ['reverse W-2'],
  },
  timeout: {
    script: once,
    play: async (world, open) => {
      const first = await open().start()
      world.clock.advance(25 * 3_600_000)
      // The token is for a question that has expired.
      const late = await open().answer(first.waiting, () => true)
      expect(world.effects).toEqual([])
      return answerAll(open, late, () => false)
    },
    effects: [],
  },
  'two calls, one denied': {
    script: both,
    play: async (_world, open) => answerAll(open, await open().start(), (wire) => wire === 'W-2'),
    effects: ['reverse W-2'],
  },
  'a crash between approval and effect': {
    script: once,
    play: async (world, open) => {
      const first = await open().start()
      await new Promise<void>((die) => {
        dying.set(world.audit, die)
        open()
          .answer(first.waiting, () => true)
          .catch(() => undefined)
      })
      dying.delete(world.audit)
      expect(world.effects).toEqual([])
      // The token is spent: what the journal recorded of the approval goes on.
      return answerAll(open, await open().answer(first.waiting, () => true), () => false)
    },
    effects: ['reverse W-1'],
  },
  'a second approval later': {
    script: twice,
    play: async (_world, open) => answerAll(open, await open().start(), () => true),
    effects: ['reverse W-1', 'reverse W-2'],
  },
}

/** Logs whose process dies when it is about to write that a call starts. */
const dying = new Map<AuditLog, () => void>()

async function openWorld(): Promise<World & { readonly log: ReturnType<typeof memoryLog> }> {
  const clock = manualClock(Date.UTC(2026, 0, 1, 12))
  const log = memoryLog({ origin: 'bank' })
  const audit: AuditLog = {
    append: (entry, options) => {
      const die = dying.get(audit)
      if (!die || !entry.line.includes('"uaicp:event":"call_started"'))
        return log.append(entry, options)
      die()
      return new Promise<number>(() => undefined)
    },
    read: (options) => log.read(options),
    seal: () => log.seal(),
    prove: (index, size) => log.prove(index, size),
    consistency: (from, to) => log.consistency(from, to),
  }
  const spent = memorySpent({ clock })
  const payloads = memoryPayloads()
  const keys = await generateKey()
  return { effects: [], clock, audit, log, payloads, spent, ...keys, inferences: 0 }
}

test('the versions of the frameworks', () => {
  const require = createRequire(import.meta.url)
  const versions = ['ai', '@openai/agents', '@langchain/langgraph', '@langchain/core'].map(
    (name) => {
      const entry = require.resolve(name)
      const root = entry.slice(0, entry.lastIndexOf(`/node_modules/${name}/`))
      const file = `${root}/node_modules/${name}/package.json`
      return `${name} ${(JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version}`
    },
  )
  const pinned = JSON.parse(
    readFileSync(new URL('./peers/package.json', import.meta.url), 'utf8'),
  ) as { dependencies: Record<string, string> }
  console.log([...versions, `langchain ${pinned.dependencies['langchain']}`].join(', '))
  expect(versions).toHaveLength(4)
})

describe.each(frameworks)('$name', ({ open }) => {
  test.each(Object.entries(scenes))('UAICP-24 %s', async (_name, { script, play, effects }) => {
    const world = await openWorld()
    const { text } = await play(world, open(world, script))
    expect(world.effects).toEqual(effects)
    const said = [...(text ?? '').matchAll(/Reversed (W-\d)/g)].map((found) => found[1])
    expect(said.map((wire) => `reverse ${wire}`)).toEqual(effects)
    // The model is asked once for each message it sends, and never because a person was slow.
    expect(world.inferences).toBe(script === twice ? 3 : 2)
    const checkpoint = await world.log.seal()
    const lines = world.log.lines.map((line) => `${line}\n`).join('')
    const options = {
      keys: [await world.log.publicKey()],
      checkpoints: world.log.checkpoints,
      trusted: checkpoint,
    }
    expect(await verifyLog(lines, options)).toMatchObject({ ok: true, faults: [] })
  })
})
