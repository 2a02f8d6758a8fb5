/**
 * A process dies between two payments. With a journal, the next one takes up the very calls that the
 * model had asked for, and pays only what is not paid yet.
 *
 * Prints:
 *
 *     paid ada
 *     -- the process dies --
 *     found: 1 of 2 calls has its result
 *     paid bob
 *     Both are paid.
 */

// #region program
import { agent, AgentState } from '@skein/agents'
import { fileCheckpoints } from '@skein/agents/checkpoint'
import { tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'

const dir = await mkdtemp(join(tmpdir(), 'journal-'))
const checkpoints = fileCheckpoints({ dir, journal: true })
let dies: ((reason: Error) => void) | undefined

/** A process that may die before it pays Bob. */
const work = () =>
  agent({
    model: scripted(({ messages }) =>
      messages.at(-1)?.type === 'tool_result'
        ? says('Both are paid.')
        : [calls('pay', { to: 'ada' }), calls('pay', { to: 'bob' })],
    ),
    tools: [
      tool({
        name: 'pay',
        description: 'Pays a customer. `idempotencyKey` of the context is the same in every try.',
        parameters: z.object({ to: z.string() }),
        run: async ({ to }) => {
          if (to === 'bob' && dies) {
            dies(new Error('-- the process dies --'))
            return new Promise(() => {})
          }
          console.log(`paid ${to}`)
          return 'ok'
        },
      }),
    ],
    toolStrategy: { maxConcurrency: 1 },
    checkpoints,
    sessionId: 'payroll',
  })

const death = new Promise<never>((_, reject) => (dies = reject))
const run = work().generate('Pay Ada and Bob', AgentState.initial())
await Promise.race([run, death]).catch((error: Error) => console.log(error.message))
dies = undefined

const state = AgentState.fromJSON(await checkpoints.load('payroll'))
console.log(`found: ${state.suspension?.answered?.results.length} of 2 calls has its result`)
const next = work()
const { turn } = await next.resume(state)
console.log(turn.text)
await next.flush()
await rm(dir, { recursive: true })
// #endregion program
