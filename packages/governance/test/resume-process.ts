// One process of an application: starts it, or answers what waits. Everything it needs is in files.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { manualClock } from '@skein/base'
import { fileSpent } from '../src/approvals/file-spent-node.ts'
import { fileLog, filePayloads } from '../src/audit/file-log-node.ts'
import type { ApprovalRequest } from '../src/index.ts'
import type { PrivateJwk, PublicJwk } from '../src/keys/keys.ts'
import { both, frameworks, type Outcome, type World } from './apps.ts'

/** What the test sends: where the files are, what to do, and the time. */
export interface Order {
  readonly dir: string
  readonly framework: string
  readonly now: number
  readonly publicJwk: PublicJwk
  readonly privateJwk: PrivateJwk
  /** What waits since the process before, if this process is to answer it; only W-1 is approved. */
  readonly waiting?: readonly ApprovalRequest[]
}

process.on('message', async (message) => {
  const order = message as Order
  const { dir, publicJwk, privateJwk } = order
  const clock = manualClock(order.now)
  const saved = join(dir, 'saved.json')
  const world: World = {
    effects: [],
    clock,
    audit: await fileLog({ dir: join(dir, 'log'), origin: 'bank', key: privateJwk }),
    payloads: filePayloads({ dir: join(dir, 'payloads') }),
    spent: fileSpent({ dir: join(dir, 'spent'), clock }),
    publicJwk,
    privateJwk,
    inferences: 0,
    ...(existsSync(saved) && { saved: readFileSync(saved, 'utf8') }),
  }
  // An effect is there as soon as it happened, whatever becomes of the process.
  world.effects.push = (...effects) => {
    appendFileSync(join(dir, 'effects'), effects.map((effect) => `${effect}\n`).join(''))
    return effects.length
  }
  const open = frameworks.find(({ name }) => name === order.framework)!.open(world, both)
  let outcome: Outcome = order.waiting
    ? { waiting: order.waiting, text: undefined }
    : await open().start()
  if (order.waiting) {
    for (let round = 0; outcome.waiting.length > 0 && round < 4; round++)
      outcome = await open().answer(outcome.waiting, ({ action }) => wireOf(action.args) === 'W-1')
  }
  if (world.saved !== undefined) writeFileSync(saved, world.saved)
  process.send!({ ...outcome, inferences: world.inferences })
})

function wireOf(args: unknown): string {
  return (args as { wire: string }).wire
}

process.send!('ready')
