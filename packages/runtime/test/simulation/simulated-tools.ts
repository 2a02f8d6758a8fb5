import { defineTool, type ThreadState, type ToolDefinition } from '@skein/runtime'
import { z } from 'zod'
import type { Lane } from '../../src/testing/simulation.ts'
import { effectFor } from './laws-effects.ts'
import { actOutside, TOOL_LIMIT_MS } from './simulated-acts.ts'
import type { World } from './world.ts'

export interface SimulatedTools {
  readonly look: ToolDefinition
  readonly put: ToolDefinition
  readonly send: ToolDefinition
  readonly ship: ToolDefinition
  readonly pay: ToolDefinition
  readonly refund: ToolDefinition
  readonly ask: ToolDefinition
  readonly leak: ToolDefinition
  readonly plan: ToolDefinition
  readonly finish: ToolDefinition
  readonly giveUp: ToolDefinition
  readonly report: ToolDefinition
}

const args = z.looseObject({ ref: z.string().optional(), text: z.string().optional() })
const SECRET = { name: 'API_KEY', type: 'secret' } as const

/** Tools of every kind. Whatever they do to the outside is written in the ledger. */
export function simulatedTools(world: World, lane: Lane): SimulatedTools {
  const { chance, ledger, canary, bugs, plan, fields } = world

  /** A write whose schema makes other arguments of what the model sends, and which takes some time. */
  const writer = (
    name: string,
    options: Partial<Parameters<typeof defineTool>[0]> = {},
  ): ToolDefinition => {
    const schema = args.extend(fieldsOf(fields))
    return defineTool({
      name,
      description: name,
      risk: 'write_low_risk',
      timeoutMs: plan.hasSlowCalls ? world.time.scaled(TOOL_LIMIT_MS) : undefined,
      ...(options as object),
      ...(bugs.has('repeatable writes') && { idempotent: true }),
      ...(bugs.has('writes that only read') && { risk: 'read_only', rollback: undefined }),
      args: schema,
      async execute({ threadId }, given, { toolCallId: callId, signal }) {
        const made = bugs.has('parsed again') ? await parsedAgain(schema, given) : given
        const ref = String(given.ref ?? '')
        await actOutside(world, lane, { tool: name, threadId, callId, ref, args: made }, signal)
        return `${name} done`
      },
    })
  }

  return {
    look: defineTool({
      name: 'look',
      description: 'look',
      risk: 'read_only',
      args,
      async execute(state) {
        await lane.turn('tool look')
        if (chance.happens(0.2)) await state.setStatus(`looking ${chance.below(100)}`)
        if (chance.happens(0.1))
          await state.emit('seen', { at: 1 }, { transient: chance.happens(0.5) })
        if (chance.happens(0.1)) throw new Error('nothing to see')
        return { seen: chance.below(100) }
      },
    }),
    put: writer('put', { idempotent: true }),
    send: writer('send'),
    ship: writer('ship', {
      probe: (given) => ledger.has('ship', (given as { ref?: string }).ref ?? ''),
    }),
    pay: writer('pay', {
      risk: 'write_high_risk',
      rollback: (given) => ({ type: 'tool_call', target: 'refund', payload: given as never }),
    }),
    refund: undoer(world, lane),
    ask: defineTool({ name: 'ask', description: 'ask', risk: 'read_only', args }),
    leak: defineTool({
      name: 'leak',
      description: 'leak',
      risk: 'read_only',
      args,
      variables: [SECRET],
      async execute(state) {
        await lane.turn('tool leak')
        if (!state.hasEnv('API_KEY')) return 'no key'
        state.env('API_KEY')
        return spill(state, canary.leak(chance), chance.below(8))
      },
    }),
    plan: defineTool({
      name: 'plan',
      description: 'plan',
      risk: 'write_low_risk',
      idempotent: true,
      args,
      async execute(state, { ref = '' }) {
        await lane.turn('tool plan')
        change(state, ref, chance.below(7), world.time.scaled(30_000))
        return 'planned'
      },
    }),
    finish: defineTool({
      name: 'finish',
      description: 'end',
      risk: 'read_only',
      args,
      execute: () => 'ended',
    }),
    giveUp: defineTool({
      name: 'give_up',
      description: 'fail',
      risk: 'read_only',
      args,
      execute: () => 'failed',
    }),
    report: defineTool({
      name: 'report',
      description: 'status',
      risk: 'read_only',
      args,
      execute: () => 'told',
    }),
  }
}

/** The fields that schemas of writes have in this run. */
function fieldsOf(fields: World['fields']): z.ZodRawShape {
  return Object.fromEntries(fields.map(([schema], place) => [`x${place}`, schema]))
}

/** Arguments as they are when they are parsed a second time; those that do not fit any more are left as they are. */
async function parsedAgain(schema: z.ZodType, given: object): Promise<object> {
  const again = await schema.safeParseAsync(given)
  return again.success ? (again.data as object) : given
}

/** Takes a payment back. */
function undoer(world: World, lane: Lane): ToolDefinition {
  return defineTool({
    name: 'refund',
    description: 'refund',
    risk: 'write_low_risk',
    idempotent: true,
    args,
    async execute({ threadId }, given, { toolCallId: callId, signal }) {
      const { ref = '' } = given
      await actOutside(world, lane, { tool: 'refund', threadId, callId, ref, args: given }, signal)
      return 'refund done'
    },
  })
}

/** A careless tool. */
async function spill(state: ThreadState, secret: string, way: number): Promise<unknown> {
  switch (way) {
    case 0:
      return { found: secret }
    case 1:
      throw new Error(`refused with ${secret}`)
    case 2:
      await state.emit('spilt', { secret })
      return 'emitted'
    case 3:
      state.setValue('spilt', secret)
      return 'kept'
    case 4:
      state.injectMessage({ content: `injected ${secret}` })
      return 'injected'
    case 5:
      await state.setStatus(`with ${secret}`)
      return 'told'
    case 6:
      state.notifyParent(`from below ${secret}`)
      return 'notified'
    default:
      return `${secret} and ${secret}`
  }
}

function change(state: ThreadState, ref: string, what: number, delayMs: number): void {
  switch (what) {
    case 0:
      return void state.scheduleEffect(effectFor(Number(ref.slice(1))), { ref }, delayMs)
    case 1:
      return void state.scheduleEffect('tick', { ref }, { cron: '*/5 * * * *', key: 'often' })
    case 2:
      return void state.queueMessage({ content: `to myself ${ref}` })
    case 3:
      return void state.setValue(`key/${ref}`, { ref })
    case 4:
      return state.notifyParent(`notice ${ref}`)
    case 5:
      return void state.injectMessage({ content: `aside ${ref}` })
    default:
      return state.setEnv('MOOD', ref)
  }
}
