import { z } from 'zod'
import type { LLMRequest } from '@skein/ai'
import { calls, fails, says, scripted, waits, type ScriptPart } from '@skein/ai/testing'
import {
  createRuntime,
  type EmbeddedRuntime,
  type RuntimeOptions,
  defineAgent,
  definePrompt,
  defineTool,
  type AgentDefinition,
  type ToolDefinition,
} from '@skein/runtime'
import { createHttp, type ApiKey, type Http, type HttpOptions } from '../../../src/index.ts'

export type Who = 'ada' | 'bob' | 'eve' | 'clerk'

const SCOPES = ['threads:read', 'threads:write', 'approvals:write'] as const

export const KEYS: Readonly<Record<Who, ApiKey & { readonly key: string }>> = {
  ada: { key: 'key-of-ada-0123456789', tenant: 'acme', user: 'ada', scopes: SCOPES },
  bob: { key: 'key-of-bob-0123456789', tenant: 'acme', user: 'bob', scopes: SCOPES },
  eve: { key: 'key-of-eve-0123456789', tenant: 'rival', scopes: SCOPES },
  clerk: {
    key: 'key-of-clerk-0123456789',
    tenant: 'acme',
    scopes: ['threads:read', 'threads:write', 'threads:all'],
  },
}

export const note: ToolDefinition = defineTool({
  name: 'note',
  description: 'Takes a note.',
  args: z.object({ text: z.string() }),
  risk: 'write_low_risk',
  execute: (_, { text }) => `Noted: ${text}`,
})

/** What was paid, to see that nothing was paid twice. */
export const paid: number[] = []

export const refund: ToolDefinition = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  args: z.object({ amount: z.number() }),
  risk: 'write_high_risk',
  rollback: ({ amount }) => ({ type: 'tool_call', target: 'note', payload: { text: `${amount}` } }),
  execute: (_, { amount }) => {
    paid.push(amount)
    return `Paid ${amount}.`
  },
})

const mail: ToolDefinition = defineTool({
  name: 'mail',
  description: 'Sends a mail.',
  args: z.object({ to: z.string() }),
  risk: 'write_high_risk',
  rollback: 'impossible',
  execute: (_, { to }) => `Sent to ${to}.`,
})

/** Runs in the page. */
export const locate: ToolDefinition = defineTool({
  name: 'locate',
  description: 'Asks the page where it is.',
  args: z.object({ precise: z.boolean() }),
  risk: 'read_only',
})

const done = defineTool({
  name: 'done',
  description: 'Ends the work.',
  args: z.object({ text: z.string() }),
  risk: 'read_only',
  execute: (_, { text }) => text,
})

export const worker: AgentDefinition = defineAgent({
  name: 'worker',
  type: 'dual_ai',
  exposeAsTool: true,
  toolDescription: 'Does the work.',
  maxSessionTurns: 6,
  sideA: {
    prompt: definePrompt({
      name: 'worker_a',
      prompt: 'Work.',
      model: scripted(({ messages }) => {
        const asked = textOf(messages[0])
        const hasPaid = messages.some(({ type }) => type === 'tool_result')
        if (asked.includes('pay') && !hasPaid) return calls('refund', { amount: 7 })
        if (asked.includes('mail') && !hasPaid) return calls('mail', { to: 'bob' })
        return [says('Inner words. '), calls('done', { text: 'The hole is dug.' })]
      }),
      tools: [done, refund, mail],
      requiredSchema: z.object({ task: z.string() }),
    }),
    sessionStop: { name: done, messageProperty: 'text' },
  },
  sideB: {
    prompt: definePrompt({
      name: 'worker_b',
      prompt: 'Review.',
      model: scripted(() => says('Go on.')),
    }),
  },
})

/** Does what the last message asks for, word by word. */
export function answer({ messages }: LLMRequest): ScriptPart | readonly ScriptPart[] {
  const last = messages.at(-1)
  const asked = textOf(messages.findLast(({ type }) => type === 'user'))
  if (last?.type === 'tool_result') {
    if (asked.includes('weather')) return says(`It is: ${String(last.results[0]?.result)}`)
    const results = messages.slice(messages.findLastIndex(({ type }) => type === 'user')).length
    if (asked.includes('twice') && results < 4) return calls('note', { text: 'second' })
    return says('That is done. Anything else?')
  }
  if (asked.includes('refund both'))
    return [calls('refund', { amount: 1 }), calls('refund', { amount: 2 })]
  if (asked.includes('refund')) return [says('I will pay. '), calls('refund', { amount: 5 })]
  if (asked.includes('locate')) return calls('locate', { precise: true })
  if (asked.includes('note'))
    return [says('Let me write that down. '), calls('note', { text: 'first' })]
  if (asked.includes('weather')) return calls('weather', { city: 'Graz' })
  if (asked.includes('fail'))
    return fails({ code: 'INVALID_REQUEST', message: 'The model is ill.' })
  if (asked.includes('hang')) return [says('One two three '), waits(Infinity)]
  if (asked.includes('work')) return calls('worker', { task: asked })
  if (asked.includes('mail')) return calls('mail', { to: 'ann' })
  if (asked.includes('silence')) return says('')
  // With waits between the pieces, so that a reader that streams sees more than one of them.
  const pieces = [`You said ${asked} `, 'and that ', 'is ', 'all ', 'there ', 'is ', 'to say.']
  return pieces.flatMap((piece) => [says(piece), waits(1)])
}

function textOf(message: LLMRequest['messages'][number] | undefined): string {
  return message?.type === 'user'
    ? message.content.map((block) => (block.type === 'text' ? block.text : '')).join(' ')
    : ''
}

export const desk: AgentDefinition = defineAgent({
  name: 'desk',
  sideA: {
    label: 'Desk',
    prompt: definePrompt({
      name: 'desk',
      prompt: 'Help.',
      model: scripted(answer),
      tools: [mail, note, refund, locate, { name: worker, initUserMessageProperty: 'task' }],
    }),
  },
})

export interface ChatKit {
  readonly runtime: EmbeddedRuntime
  readonly http: Http
  fetch(who: Who, path: string, init?: RequestInit): Promise<Response>
  stop(): Promise<void>
}

export async function startChatKit(
  options: {
    readonly runtime?: Partial<RuntimeOptions>
    readonly http?: Partial<HttpOptions>
  } = {},
): Promise<ChatKit> {
  const runtime = await createRuntime({ agents: [desk], ...options.runtime })
  await runtime.start()
  const http = createHttp(runtime, { auth: { keys: Object.values(KEYS) }, ...options.http })
  const fetch: ChatKit['fetch'] = (who, path, init = {}) => {
    const headers = new Headers(init.headers)
    headers.set('authorization', `Bearer ${KEYS[who].key}`)
    return http.fetch(new Request(new URL(path, 'http://localhost'), { ...init, headers }))
  }
  return {
    runtime,
    http,
    fetch,
    stop: () => runtime.stop({ graceMs: 0 }),
  }
}

/** A value as JSON text would bring it. */
export function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}
