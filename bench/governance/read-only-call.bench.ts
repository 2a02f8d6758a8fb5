import { memoryLog } from '@skein/governance/audit'
import type { Journal } from '@skein/governance'
import type { Bench, Contender } from '../runner/bench.ts'
import { measured } from '../runner/bench.ts'
import { peer } from '../runner/peers.ts'
import { identity, newFileLog, plainTool, setUp } from './setup.ts'

const calls = 2_000
const args = { order: 'A-1' }

/** Microseconds per call. */
async function timed(call: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  for (let index = 0; index < calls; index++) await call()
  return ((performance.now() - start) * 1000) / calls
}

/** Calls inside one governed run; each leaves a schema-valid entry with hashes of arguments and result. */
function governedCalls(open: () => Journal | Promise<Journal>): Contender {
  return {
    async prepare() {
      const { governor, task, tool } = setUp(await open(), 'read_only')
      return async () => {
        let time = 0
        await governor.run(task, { identity, input: null }, async (run) => {
          time = await timed(() => run.call(tool, args))
          return null
        })
        return measured(time)
      }
    },
  }
}

interface AgentGovernance {
  AgentMeshClient: {
    create(
      id: string,
      options: object,
    ): {
      executeWithGovernance(action: string, params: object): Promise<{ decision: string }>
    }
  }
}

const bench: Bench = {
  title: 'one read-only call (goal: 15 µs over the bare call, 1.0 × the agent governance SDK)',
  baseline: 'bare call',
  measure: 'returned',
  unit: 'µs',
  contenders: {
    'bare call': {
      prepare: () => async () => measured(await timed(() => plainTool.run(args))),
    },
    '@skein/governance, file log': governedCalls(newFileLog),
    '@skein/governance, memory log': governedCalls(memoryLog),
    // In memory; no argument hash, no schema-valid record, no evidence.
    '@microsoft/agent-governance-sdk': {
      peers: ['@microsoft/agent-governance-sdk'],
      async prepare() {
        const { AgentMeshClient } = await peer<AgentGovernance>('@microsoft/agent-governance-sdk')
        const client = AgentMeshClient.create('agent', {
          policyRules: [{ action: 'look_up', effect: 'allow' }],
        })
        const { decision } = await client.executeWithGovernance('look_up', args)
        if (decision !== 'allow') throw new Error(`The SDK answered ${decision}.`)
        return async () =>
          measured(
            await timed(async () => {
              await client.executeWithGovernance('look_up', args)
              return plainTool.run(args)
            }),
          )
      },
    },
  },
}

export default bench
