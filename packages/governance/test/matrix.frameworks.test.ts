/**
 * Every framework × every way an approval can go, with the framework's real runner: one approval has one
 * effect, and the text that is delivered says what happened.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once as onceEmitted } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualClock } from '@skein/base'
import { afterAll, describe, expect, test } from 'vitest'
import { peersOf } from '../../../scripts/peers.ts'
import { generateKey, memorySpent } from '../src/approvals/index.ts'
import { memoryLog, verifyLog } from '../src/audit/index.ts'
import { type AuditLog, memoryPayloads, type PayloadStore } from '../src/index.ts'
import {
  type App,
  both,
  frameworks,
  once,
  type Outcome,
  type Script,
  twice,
  type World,
} from './apps.ts'
import type { Order } from './resume-process.ts'
import { closeUseChat, useChatApp } from './use-chat-app.ts'

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

const require = createRequire(import.meta.url)

/** The version of an installed package, which may not export its package.json. */
function versionOf(name: string): string {
  const folder = require.resolve.paths(name)!.map((path) => join(path, name, 'package.json'))
  for (const file of folder) {
    try {
      return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
    } catch {
      continue // not in this folder
    }
  }
  throw new Error(`${name} is not installed`)
}

test('the versions of the real clients', () => {
  const own = [
    'ai',
    '@ai-sdk/react',
    '@openai/agents',
    '@langchain/langgraph',
    '@langchain/core',
    '@opentelemetry/sdk-trace-base',
  ].map((name) => [name, versionOf(name)] as const)
  const peers = [
    ['frameworks', 'langchain'],
    ['frameworks', '@cedar-policy/cedar-wasm'],
    ['sdks', '@ag-ui/client'],
  ].flatMap(([folder, name]) => {
    const { isInstalled, version } = peersOf(folder!)
    return isInstalled ? [[name!, version(name!)] as const] : []
  })
  const clients = [...own, ...peers]
  console.log(`real clients: ${clients.map((client) => client.join(' ')).join(', ')}`)
  for (const [, version] of clients) expect(version).toMatch(/^\d+\.\d+\.\d+/)
})

afterAll(closeUseChat)

describe.each([...frameworks, useChatApp])('$name', ({ open }) => {
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

describe.each(frameworks)('$name, with a slow store', ({ open }) => {
  // Frameworks run the calls of one message at the same time, and some end the message as soon as one of them
  // waits for a person. What the other was doing must not be cut off or be done twice.
  test.each(['W-1', 'W-2'])('UAICP-24 the call for %s is the slow one', async (slow) => {
    const opened = await openWorld()
    const { put } = opened.payloads
    const payloads: PayloadStore = {
      ...opened.payloads,
      put: async (hash, text, options) => {
        await new Promise((resolve) => setTimeout(resolve, text.includes(slow) ? 15 : 0))
        return put(hash, text, options)
      },
    }
    const world: World = { ...opened, payloads }
    const { text } = await answerAll(
      open(world, both),
      await open(world, both)().start(),
      () => true,
    )
    expect(world.effects.toSorted()).toEqual(['reverse W-1', 'reverse W-2'])
    expect(text).toBe('Reversed W-1. Reversed W-2.')
    expect(world.inferences).toBe(2)
  })
})

describe('another process goes on', () => {
  test.each(frameworks.map(({ name }) => name))(
    'UAICP-24 %s: the first process is killed while a person is asked',
    async (framework) => {
      const dir = mkdtempSync(join(tmpdir(), 'skein-resume-'))
      const order = { dir, framework, now: Date.UTC(2026, 0, 1, 12), ...(await generateKey()) }
      try {
        const asked = await inProcess(order)
        expect(asked.waiting.length).toBeGreaterThan(0)
        expect(effectsIn(dir)).toEqual([])
        const told = await inProcess({ ...order, waiting: asked.waiting })
        expect(told.waiting).toEqual([])
        expect(effectsIn(dir)).toEqual(['reverse W-1'])
        expect(told.text?.match(/Reversed W-\d/g)).toEqual(['Reversed W-1'])
        expect(told.text).toContain('did not happen')
        // The model was asked once in each process, and never again for what it had said.
        expect([asked.inferences, told.inferences]).toEqual([1, 1])
      } finally {
        rmSync(dir, { recursive: true })
      }
    },
    60_000,
  )
})

/** Carries out an order in a process of its own, which is then killed, and returns what it said. */
async function inProcess(order: Order): Promise<Outcome & { readonly inferences: number }> {
  const child: ChildProcess = fork(new URL('resume-process.ts', import.meta.url), [], {
    execArgv: ['--conditions=@skein/source', '--disable-warning=ExperimentalWarning'],
  })
  try {
    await onceEmitted(child, 'message')
    child.send(order)
    const [outcome] = (await onceEmitted(child, 'message')) as [
      Outcome & { readonly inferences: number },
    ]
    return outcome
  } finally {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await onceEmitted(child, 'exit')
  }
}

function effectsIn(dir: string): string[] {
  try {
    return readFileSync(join(dir, 'effects'), 'utf8').trimEnd().split('\n')
  } catch {
    return [] // nothing happened yet
  }
}
