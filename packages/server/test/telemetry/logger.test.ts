import { pino } from 'pino'
import { expect, test } from 'vitest'
import { calls, fails, says, scripted } from '@skein/ai/testing'
import { manualClock } from '@skein/base'
import { z } from 'zod'
import {
  defineAgent,
  defineEndpoint,
  defineHook,
  definePrompt,
  defineTool,
  createRuntime,
  type RuntimeOptions,
  memoryStore,
} from '@skein/runtime'
import { createHttp } from '../../src/http/create-http.ts'
import { lineLogger, loggedError, rememberRedactor } from '../../../runtime/src/telemetry/logger.ts'

type Line = Readonly<Record<string, unknown>>

/** A logger of the real pino, and the lines that it wrote. */
function pinoLines(level = 'trace') {
  const lines: string[] = []
  const logger = pino({ level, base: null }, { write: (line: string) => void lines.push(line) })
  return { logger, lines, parsed: (): Line[] => lines.map((line) => JSON.parse(line) as Line) }
}

const CANARY = 'canary-7b1f0e55'
const look = defineTool({
  name: 'look',
  description: 'Looks.',
  args: z.object({}),
  risk: 'read_only',
  variables: [{ name: 'TOKEN', type: 'secret', required: true, description: 'A key.' }],
  execute: (state) => {
    throw new Error(`The vendor refused ${state.env('TOKEN')}`)
  },
})

async function boot(options: Partial<RuntimeOptions>) {
  const { logger, lines, parsed } = pinoLines()
  const model = scripted([
    calls('look', {}),
    fails({ code: 'AUTHENTICATION_FAILED', message: `bad key ${CANARY}` }),
  ])
  const prompt = definePrompt({ name: 'desk', prompt: 'Look.', model, tools: [look] })
  const agents = [defineAgent({ name: 'desk', sideA: { prompt } })]
  const runtime = await createRuntime({ agents, logger, ...options })
  await runtime.start()
  const create = { agent: 'desk', tenant: 'acme', secrets: { TOKEN: CANARY } }
  const thread = await runtime.threads.create(create)
  return { runtime, logger, lines, parsed, thread }
}

test('sessions, failures and waits are logged to pino, without texts and secrets', async () => {
  const { runtime, lines, parsed, thread } = await boot({})
  await runtime.threads.run(thread.id, 'A private question.')
  await runtime.stop()
  const messages = parsed().map(({ msg }) => msg)
  expect(messages).toEqual(
    expect.arrayContaining([
      'session started',
      'call ended',
      'model request failed',
      'session failed',
    ]),
  )
  const failed = parsed().find(({ msg }) => msg === 'session failed')!
  expect(failed).toMatchObject({
    level: 40,
    threadId: thread.id,
    tenant: 'acme',
    agent: 'desk',
    outcome: 'failed',
    reason: 'model_error',
  })
  expect(lines.join()).not.toContain(CANARY)
  expect(lines.join()).not.toContain('private question')
})

test('an error of background work is logged with its thread, and without the secrets of the thread', async () => {
  const store = memoryStore()
  const { runtime, lines, parsed, thread } = await boot({
    store: new Proxy(store, {
      get(target, name) {
        if (name === 'commit')
          return (commit: Parameters<typeof store.commit>[0]) => {
            if (commit.point.startsWith('answer')) throw new Error(`disk full near ${CANARY}`)
            return target.commit(commit)
          }
        const member: unknown = Reflect.get(target, name)
        return typeof member === 'function' ? member.bind(target) : member
      },
    }),
  })
  await runtime.threads.send(thread.id, 'Go.')
  await expect.poll(() => parsed().some(({ msg }) => msg === 'background work failed')).toBe(true)
  await runtime.stop({ graceMs: 0 })
  const line = parsed().find(({ msg }) => msg === 'background work failed')!
  expect(line).toMatchObject({ level: 50, threadId: thread.id })
  expect(line['err']).toMatchObject({ type: 'Error', message: 'disk full near [redacted]' })
  expect(lines.join()).not.toContain(CANARY)
})

test('requests are logged: method, path, status, time, id and tenant, never queries or keys', async () => {
  const endpoint = defineEndpoint({
    path: 'fails',
    method: 'GET',
    execute: (_, state) => {
      throw new Error(`endpoint saw ${state.env('TOKEN')} and key-${'k'.repeat(32)}`)
    },
  })
  const { runtime, lines, parsed, thread, logger } = await boot({ endpoints: [endpoint] })
  const key = `key-${'k'.repeat(32)}`
  const auth = { keys: [{ key, tenant: 'acme', scopes: ['admin' as const] }] }
  const http = createHttp(runtime, { auth, logger })
  lines.length = 0
  const get = (
    path: string,
    headers: Record<string, string> = { authorization: `Bearer ${key}` },
  ) => http.fetch(new Request(`http://localhost${path}`, { headers }))

  const ok = await get(`/threads/${thread.id}?secret=${CANARY}`)
  await get('/threads', {})
  await get(`/threads/${thread.id}/x/fails`)
  await get(`/nowhere/${key}`)
  const traced = await get('/threads', { authorization: `Bearer ${key}`, 'x-request-id': 'r-1' })
  const forged = await get('/threads', { 'x-request-id': 'a"b' })
  await runtime.stop()

  const requests = parsed().filter(({ msg }) => msg === 'request')
  expect(
    requests.map(({ level, method, path, status, tenant }) => [
      level,
      method,
      path,
      status,
      tenant,
    ]),
  ).toEqual([
    [40, 'GET', `/threads/${thread.id}`, 400, 'acme'], // it has no such parameter
    [40, 'GET', '/threads', 401, undefined],
    [50, 'GET', `/threads/${thread.id}/x/fails`, 500, 'acme'],
    [40, 'GET', '/nowhere/[redacted]', 404, undefined],
    [30, 'GET', '/threads', 200, 'acme'],
    [40, 'GET', '/threads', 401, undefined],
  ])
  for (const { ms } of requests) expect(ms).toEqual(expect.any(Number))
  expect(ok.headers.get('x-request-id')).toBe(requests[0]!['requestId'])
  expect([traced.headers.get('x-request-id'), requests[4]!['requestId']]).toEqual(['r-1', 'r-1'])
  expect(forged.headers.get('x-request-id')).not.toBe('a"b')
  const error = parsed().find(({ msg }) => msg === 'unexpected error')!
  expect(error['err']).toMatchObject({ message: 'endpoint saw [redacted] and [redacted]' })
  const all = lines.join()
  expect(all).not.toContain(CANARY)
  expect(all).not.toContain('k'.repeat(32))
})

test('a hook that fails is logged with its code', async () => {
  const { logger, parsed } = pinoLines('warn')
  const hook = defineHook({
    id: 'broken',
    hook: 'after_create_message',
    execute: () => {
      throw new Error('no')
    },
  })
  const prompt = definePrompt({
    name: 'desk',
    prompt: 'x',
    model: scripted([says('Hi.')]),
    hooks: [hook],
  })
  const agents = [defineAgent({ name: 'desk', sideA: { prompt } })]
  const runtime = await createRuntime({ agents, logger })
  await runtime.start()
  const thread = await runtime.threads.create({ agent: 'desk' })
  await runtime.threads.run(thread.id, 'Hi.')
  await runtime.stop()
  expect(parsed()).toContainEqual(expect.objectContaining({ level: 50, code: 'HOOK_FAILED' }))
})

test('lineLogger writes pino-like JSON, or a line for people with control characters shown', () => {
  const lines: string[] = []
  const options = {
    write: (line: string) => void lines.push(line),
    clock: manualClock(Date.UTC(2026, 0, 1)),
  }
  const json = lineLogger({ ...options, format: 'json' }).child({ server: 1 })
  json.info({ a: 'b' }, 'hello')
  json.debug({}, 'hidden')
  expect(JSON.parse(lines.pop()!)).toEqual({
    level: 30,
    time: Date.UTC(2026, 0, 1),
    server: 1,
    a: 'b',
    msg: 'hello',
  })
  expect(lines).toEqual([])
  const text = lineLogger({ ...options, format: 'text', level: 'debug' })
  text.warn({ path: '/\u001b[2J', n: 1, none: undefined }, 'request')
  text.error({ err: { name: 'Error', message: 'broken', code: 'X' } }, 'failed')
  expect(lines).toEqual([
    '00:00:00 warn: request path=/\\u{1b}[2J n=1',
    '00:00:00 error: failed broken [X]',
  ])
  lineLogger({ ...options, format: 'text', level: 'silent' }).error({}, 'x')
  expect(lines).toHaveLength(2)
})

test('loggedError removes remembered secrets from message, hint and stack', () => {
  const error = Object.assign(new Error(`a ${CANARY}`), { code: 'C', hint: `b ${CANARY}` })
  rememberRedactor(error, (text) => text.replaceAll(CANARY, '*'))
  expect(JSON.stringify(loggedError(error))).not.toContain(CANARY)
  expect(loggedError(error)).toMatchObject({ code: 'C', message: 'a *', hint: 'b *' })
  expect(loggedError('plain secret-1234', ['secret-1234'])).toEqual({
    name: 'string',
    message: 'plain [redacted]',
  })
})

test('a logger that throws stops neither threads nor requests, and onError is still called', async () => {
  const fail = (): never => {
    throw new Error('no space for logs')
  }
  const broken = { debug: fail, info: fail, warn: fail, error: fail }
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  const { runtime, thread } = await boot({ logger: broken, onError })
  const { outcome } = await runtime.threads.run(thread.id, 'Go.')
  expect(outcome).toBe('failed') // as the model does
  expect(errors).toEqual([])
  const http = createHttp(runtime, { auth: 'none', logger: broken })
  expect((await http.fetch(new Request('http://localhost/healthz'))).status).toBe(200)
  await runtime.stop()
})

test('an error whose secrets cannot be read is logged without its text', () => {
  const error = new Error(`a ${CANARY}`)
  rememberRedactor(error, () => {
    throw new Error('wrong key')
  })
  expect(JSON.stringify(loggedError(error))).not.toContain(CANARY)
})
