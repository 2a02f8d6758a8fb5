import { z } from 'zod'
import type { LLMRequest } from '@skein/ai'
import { calls, says, scripted, stops, waits, type ScriptPart } from '@skein/ai/testing'
import {
  createRuntime,
  type EmbeddedRuntime,
  type RuntimeOptions,
  defineAgent,
  defineEffect,
  defineEndpoint,
  definePrompt,
  defineTool,
  type AgentDefinition,
  type EffectDefinition,
  type EndpointDefinition,
} from '@skein/runtime'
import { createHttp, type ApiKey, type Http, type HttpOptions } from '../../src/index.ts'
import type { ClientConnection } from '../../src/http/create-http.ts'

/** Every scope but those that look over owners or tenants. */
const SCOPES = [
  'threads:read',
  'threads:write',
  'approvals:write',
  'logs:read',
  'env:write',
] as const

export type Who = 'acme' | 'rival' | 'ada' | 'bob' | 'reader'

export const KEYS: Readonly<Record<Who, ApiKey & { readonly key: string }>> = {
  acme: { key: 'key-of-acme-0123456789', tenant: 'acme', scopes: ['admin', 'metrics:read'] },
  rival: { key: 'key-of-rival-0123456789', tenant: 'rival', scopes: ['admin', 'metrics:read'] },
  ada: { key: 'key-of-ada-0123456789', tenant: 'acme', user: 'ada', scopes: SCOPES },
  bob: { key: 'key-of-bob-0123456789', tenant: 'acme', user: 'bob', scopes: SCOPES },
  reader: { key: 'key-of-reader-0123456789', tenant: 'acme', scopes: ['threads:read'] },
}

const note = defineTool({
  name: 'note',
  description: 'Takes a note.',
  args: z.object({ text: z.string() }),
  risk: 'write_low_risk',
  execute: (_, { text }) => text,
})

const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  args: z.object({ amount: z.number() }),
  risk: 'write_high_risk',
  rollback: ({ amount }) => ({ type: 'tool_call', target: 'note', payload: { text: `${amount}` } }),
  execute: (_, { amount }) => `Paid ${amount}.`,
})

const ask = defineTool({
  name: 'ask',
  description: 'Asks whoever is at the other end.',
  args: z.object({ question: z.string() }),
  risk: 'read_only',
})

const done = defineTool({
  name: 'done',
  description: 'Ends the work.',
  args: z.object({ text: z.string() }),
  risk: 'read_only',
  execute: (_, { text }) => text,
})

/** Answers what the last message asks for, in one word that it contains. */
function answer({ messages }: LLMRequest): ScriptPart | readonly ScriptPart[] {
  const last = messages.at(-1)
  if (last?.type !== 'user') return says('That is done.')
  const text = last.content.map((block) => (block.type === 'text' ? block.text : '')).join(' ')
  const use = stops(undefined, { usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } })
  if (text.includes('refund')) return calls('refund', { amount: 5 })
  if (text.includes('ask')) return calls('ask', { question: 'Which one?' })
  if (text.includes('note')) return calls('note', { text: 'noted' })
  if (text.includes('hang')) return [says('Working on it. '), waits(Infinity)]
  if (text.includes('secret work')) return calls('vault', { task: 'open the vault' })
  if (text.includes('work')) return calls('worker', { task: 'dig a hole' })
  // With waits between the pieces, so that a reader that streams sees more than one of them.
  const sentence = [says('All the words '), waits(1), says('there are. '), waits(1)]
  return [says(`You said: ${text}. `), waits(1), ...sentence, ...sentence, ...sentence, use]
}

const model = scripted(answer)
const worker = (name: string, variables: { name: string; type: 'secret' }[]) =>
  defineAgent({
    name,
    type: 'dual_ai',
    exposeAsTool: true,
    toolDescription: 'Does the work.',
    maxSessionTurns: 6,
    sideA: {
      prompt: definePrompt({
        name: `${name}_a`,
        prompt: 'Work.',
        model: scripted(() => [says('Dug a bit. '), calls('done', { text: 'The hole is dug.' })]),
        tools: [done],
        requiredSchema: z.object({ task: z.string() }),
        variables: variables.map((variable) => ({ ...variable, required: true, scoped: true })),
      }),
      sessionStop: { name: done, messageProperty: 'text' },
    },
    sideB: {
      prompt: definePrompt({
        name: `${name}_b`,
        prompt: 'Review.',
        model: scripted(() => says('Go on.')),
      }),
    },
  })

export const desk: AgentDefinition = defineAgent({
  name: 'desk',
  title: 'Desk',
  sideA: {
    prompt: definePrompt({
      name: 'desk',
      prompt: 'Help.',
      model,
      tools: [
        note,
        refund,
        ask,
        { name: worker('worker', []), initUserMessageProperty: 'task' },
        {
          name: worker('vault', [{ name: 'VAULT_CODE', type: 'secret' }]),
          initUserMessageProperty: 'task',
        },
      ],
    }),
  },
})

export const effects: readonly EffectDefinition[] = [
  defineEffect({ name: 'remind', execute: (state) => state.setValue('reminded', true) }),
]

/** Every runtime of this file; the thread of a request is in one of them. */
const started = new Set<EmbeddedRuntime>()

export const endpoints: readonly EndpointDefinition[] = [
  defineEndpoint({
    path: 'orders/[id]',
    method: 'GET',
    execute: (request, state, { id }) =>
      Response.json({ id, thread: state.threadId, key: request.headers.get('authorization') }),
  }),
  defineEndpoint({
    path: 'orders',
    method: 'POST',
    execute: async (request, state) => {
      state.setValue('order', (await request.json()) as string)
      return new Response('kept', { status: 201 })
    },
  }),
  defineEndpoint({
    path: 'stale',
    method: 'POST',
    isRepeatable: false,
    execute: async (_, state) => {
      state.getValue('order')
      // As another client does, between the read and the write.
      for (const { threads } of started)
        await threads.values.set(state.threadId, 'order', 'of another').catch(() => undefined)
      state.setValue('order', 'of this')
      return new Response('kept')
    },
  }),
  ...(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const).map((method) =>
    defineEndpoint({ path: 'example', method, execute: () => new Response(method) }),
  ),
]

export interface Kit {
  readonly runtime: EmbeddedRuntime
  readonly http: Http
  /** Sends a request as somebody; a body that is no text is sent as JSON. */
  ask(
    who: Who | undefined,
    method: string,
    path: string,
    body?: unknown,
    headers?: HeadersInit,
  ): Promise<Response>
  /** As `ask`, giving the JSON of the answer. */
  json<T = Record<string, never>>(
    who: Who,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<T>
  stop(): Promise<void>
}

export interface KitOptions {
  readonly http?: Partial<HttpOptions>
  readonly runtime?: Partial<RuntimeOptions>
  readonly connection?: ClientConnection
}

/** A runtime with one agent, on the network but without one. */
export async function startKit(options: KitOptions = {}): Promise<Kit> {
  const runtime = await createRuntime({ agents: [desk], effects, endpoints, ...options.runtime })
  started.add(runtime)
  await runtime.start()
  const http = createHttp(runtime, { auth: { keys: Object.values(KEYS) }, ...options.http })
  const ask: Kit['ask'] = (who, method, path, body, headers) => {
    const isRaw = body === undefined || typeof body === 'string' || body instanceof Uint8Array
    const all = new Headers(headers)
    if (who) all.set('authorization', `Bearer ${KEYS[who].key}`)
    if (!isRaw && !all.has('content-type')) all.set('content-type', 'application/json')
    const content = isRaw ? (body as BodyInit | undefined) : JSON.stringify(body)
    const init = { method, headers: all, ...(content !== undefined && { body: content }) }
    return http.fetch(new Request(`http://localhost${path}`, init), options.connection)
  }
  return {
    runtime,
    http,
    ask,
    async json<T>(who: Who, method: string, path: string, body?: unknown) {
      const response = await ask(who, method, path, body)
      const text = await response.text()
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
      return JSON.parse(text === '' ? 'null' : text) as T
    },
    stop: () => runtime.stop({ graceMs: 0 }),
  }
}
