import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted, waits } from '@skein/ai/testing'
import { defineAgent } from '../../packages/runtime/src/definitions/define-agent.ts'
import { definePrompt } from '../../packages/runtime/src/definitions/define.ts'
import { defineTool } from '../../packages/runtime/src/definitions/define-tool.ts'
import { createClient, type Client, type TreeEvent } from '@skein/server/client'
import { startKit, KEYS, type Kit } from '../../packages/server/test/http/http-kit.ts'

const kits: Kit[] = []
afterEach(async () => {
  for (const kit of kits.splice(0)) await kit.stop()
})

const done = defineTool({
  name: 'done',
  description: 'Ends the work.',
  args: z.object({ text: z.string() }),
  risk: 'read_only',
  execute: (_, { text }) => text,
})

/** A worker whose side A needs a code that only a person has. */
const vault = defineAgent({
  name: 'vault',
  type: 'dual_ai',
  exposeAsTool: true,
  toolDescription: 'Opens the vault.',
  maxSessionTurns: 4,
  sideA: {
    prompt: definePrompt({
      name: 'vault_a',
      prompt: 'Open it.',
      model: scripted(() => calls('done', { text: 'It is open.' })),
      tools: [done],
      requiredSchema: z.object({ task: z.string(), papers: z.array(z.string()) }),
      variables: [
        { name: 'VAULT_CODE', type: 'secret', required: true, scoped: true },
        { name: 'VAULT_NAME', type: 'text', required: true, scoped: true },
      ],
    }),
    sessionStop: { name: done, messageProperty: 'text' },
  },
  sideB: {
    prompt: definePrompt({
      name: 'vault_b',
      prompt: 'Look.',
      model: scripted(() => says('Continue.')),
    }),
  },
})

const args = { task: 'Open the vault for me.', papers: ['/papers/deed.txt'] }

const keeper = defineAgent({
  name: 'keeper',
  sideA: {
    prompt: definePrompt({
      name: 'keeper',
      prompt: 'Keep.',
      model: scripted(({ messages }) =>
        messages.at(-1)?.type === 'user' && messages.length === 1
          ? calls('vault', args)
          : says('Very well.'),
      ),
      tools: [{ name: vault, initUserMessageProperty: 'task', initAttachmentsProperty: 'papers' }],
    }),
  },
})

interface Asked {
  readonly kit: Kit
  readonly threadId: string
  /** As the tool error told the model. */
  readonly endpoint: string
}

/** A keeper that wanted its vault and had to ask for variables. */
async function askForVariables(prefix = '', env: Record<string, string> = {}): Promise<Asked> {
  const kit = await startKit({ runtime: { agents: [keeper] }, http: { prefix } })
  kits.push(kit)
  const owned = { tenant: 'acme', owner: 'ada' }
  const { id } = await kit.runtime.threads.create({ agent: 'keeper', env, ...owned })
  await kit.runtime.threads.files.write(
    id,
    '/papers/deed.txt',
    new TextEncoder().encode('The deed.'),
  )
  await kit.runtime.threads.run(id, 'Please.')
  const events = await kit.runtime.threads.events(id)
  const failed = events.flatMap(({ event }) =>
    event.type === 'tool_execution_end' ? [event] : [],
  )[0]
  const { error, endpoint } = JSON.parse(String(failed?.result)) as {
    error: string
    endpoint: string
  }
  expect([failed?.outcome, error]).toEqual(['failed', 'subagent_env_required'])
  return { kit, threadId: id, endpoint }
}

test('SA-62 the endpoint that the error names answers GET and POST, with a prefix and without, once', async () => {
  for (const prefix of ['', '/api']) {
    const { kit, threadId, endpoint } = await askForVariables(prefix)
    expect(endpoint).toMatch(new RegExp(`^/threads/${threadId}/variables/[^/]+$`))
    expect((await kit.ask('ada', 'GET', endpoint)).status).toBe(200)
    expect((await kit.ask('ada', 'GET', `${prefix}${endpoint}`)).status).toBe(200)
    expect((await kit.ask('bob', 'GET', endpoint)).status).toBe(404)
    expect((await kit.ask(undefined, 'POST', endpoint, {})).status).toBe(401)
    const values = { VAULT_CODE: '4711', VAULT_NAME: 'North' }
    const answers = await Promise.all([1, 2, 3].map(() => kit.ask('ada', 'POST', endpoint, values)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    await kit.runtime.idle()
    const created = (await kit.runtime.threads.events(threadId)).filter(
      ({ event }) => event.type === 'subagent_created',
    )
    expect(created).toHaveLength(1)
  }
})

test('SA-63 GET lists required and missing names, and never a value', async () => {
  const { kit, threadId, endpoint } = await askForVariables()
  const asked = await kit.json('ada', 'GET', endpoint)
  expect(asked).toEqual({
    requestId: endpoint.split('/').at(-1),
    required: ['VAULT_CODE', 'VAULT_NAME'],
    missing: ['VAULT_CODE', 'VAULT_NAME'],
    expiresAt: expect.any(String),
    status: 'open',
  })
  const short = await kit.ask('ada', 'POST', endpoint, { VAULT_NAME: 'canary-name' })
  expect([short.status, await short.text()]).toEqual([
    422,
    expect.not.stringContaining('canary-name'),
  ])
  await kit.json('ada', 'POST', endpoint, { VAULT_CODE: 'canary-code', VAULT_NAME: 'canary-name' })
  await kit.runtime.idle()
  const after = await (await kit.ask('ada', 'GET', endpoint)).text()
  expect(JSON.parse(after)).toMatchObject({
    status: 'provided',
    required: ['VAULT_CODE', 'VAULT_NAME'],
  })
  expect(after).not.toContain('canary')
  for (const path of ['events?limit=1000', 'export', 'env', 'stream?until=parked'])
    expect(
      await (await kit.ask('ada', 'GET', `/threads/${threadId}/${path}`)).text(),
      path,
    ).not.toContain('canary-code')
})

test('SA-62 the endpoint answers for its own request alone, and takes texts only', async () => {
  const { kit, threadId, endpoint } = await askForVariables()
  const statusOf = async (method: string, path: string, body?: unknown) =>
    (await kit.ask('ada', method, path, body)).status
  const values = { VAULT_CODE: '4711', VAULT_NAME: 'North' }
  const other = await kit.runtime.threads.create({ agent: 'keeper', tenant: 'acme', owner: 'ada' })
  const requestId = endpoint.split('/').at(-1)!
  for (const path of [
    `/threads/${threadId}/variables/unknown`,
    `/threads/${other.id}/variables/${requestId}`,
  ]) {
    expect(await statusOf('GET', path), path).toBe(404)
    expect(await statusOf('POST', path, values), path).toBe(404)
  }
  for (const bad of [{ ...values, VAULT_CODE: 4711 }, { ...values, VAULT_CODE: null }, [values]])
    expect([400, 422]).toContain(await statusOf('POST', endpoint, bad))
  // No one who may only read gives values.
  expect((await kit.ask('reader', 'POST', endpoint, values)).status).toBe(403)
  expect(await kit.json('ada', 'GET', endpoint)).toMatchObject({ status: 'open' })
  const { reference } = await kit.json<{ reference: string }>('ada', 'POST', endpoint, values)
  await kit.runtime.idle()
  const log = (await kit.runtime.threads.events(threadId)).map(({ event }) => event)
  expect(log.filter(({ type }) => type === 'variables_provided')).toMatchObject([
    { requestId, by: 'ada' },
  ])
  expect(log.filter(({ type }) => type === 'subagent_created')).toMatchObject([{ reference }])
})

test('SA-63 a variable that has a value is required and not missing; POST may leave it out or replace it', async () => {
  for (const name of [undefined, 'South']) {
    const { kit, endpoint } = await askForVariables('', { VAULT_NAME: 'North' })
    expect(await kit.json('ada', 'GET', endpoint)).toMatchObject({
      required: ['VAULT_CODE', 'VAULT_NAME'],
      missing: ['VAULT_CODE'],
    })
    const values = { VAULT_CODE: '4711', ...(name && { VAULT_NAME: name }) }
    const { reference } = await kit.json<{ reference: string }>('ada', 'POST', endpoint, values)
    await kit.runtime.idle()
    expect(await kit.runtime.threads.env.list(reference)).toContainEqual({
      name: 'VAULT_NAME',
      type: 'text',
      value: name ?? 'North',
    })
  }
})

test('SA-64 POST stores the values and boots the child immediately with the original payload', async () => {
  const { kit, threadId, endpoint } = await askForVariables()
  const { threads } = kit.runtime
  // What happens to the parent meanwhile changes nothing of what the child is given.
  await threads.run(threadId, 'Something else.')
  const { reference } = await kit.json<{ reference: string }>('ada', 'POST', endpoint, {
    VAULT_CODE: '4711',
    VAULT_NAME: 'North',
  })
  await kit.runtime.idle()
  const child = await threads.get(reference)
  expect(child).toMatchObject({
    agent: 'vault',
    parentId: threadId,
    rootId: threadId,
    tenant: 'acme',
    owner: 'ada',
  })
  const events = (await threads.events(reference)).map(({ event }) => event)
  const first = events.find((event) => event.type === 'message_added')
  expect(first).toMatchObject({
    message: { type: 'user', content: [{ type: 'text', text: args.task }] },
  })
  const [file] = await threads.files.list(reference)
  expect(first?.attachments).toEqual([file?.path])
  // Paths are those of the child's own copy.
  const own = { ...args, papers: [file?.path] }
  expect(events[0]).toMatchObject({ type: 'thread_created', arguments: own })
  const { bytes } = await threads.files.read(reference, file!.path)
  expect(new TextDecoder().decode(bytes)).toBe('The deed.')
  const env = await threads.env.list(reference)
  expect(env).toEqual(
    expect.arrayContaining([
      { name: 'VAULT_CODE', type: 'secret' },
      { name: 'VAULT_NAME', type: 'text', value: 'North' },
    ]),
  )
  expect(events.find(({ type }) => type === 'session_end')).toMatchObject({
    type: 'session_end',
    outcome: 'completed',
    message: 'It is open.',
  })
})

test('SA-85 over HTTP a terminated thread takes no message, no resume, no file, no value and no effect', async () => {
  const kit = await startKit()
  kits.push(kit)
  const { id } = await kit.json<{ id: string }>('acme', 'POST', '/threads', {
    agent: 'desk',
    message: 'Hello',
  })
  await kit.runtime.threads.settled(id)
  const before = await kit.json<{ messages: unknown[] }>('acme', 'GET', `/threads/${id}/messages`)
  for (let i = 0; i < 2; i++)
    expect((await kit.ask('acme', 'POST', `/threads/${id}/terminate`)).status).toBe(204)
  const refused: [string, string, unknown][] = [
    ['POST', 'messages', { text: 'Are you there?' }],
    ['POST', 'resume', {}],
    ['PUT', 'files/a.txt', 'x'],
    ['PUT', 'values/a', { value: 1 }],
    ['PUT', 'env/A', { value: '1' }],
    ['POST', 'effects', { name: 'remind', delayMs: 1 }],
  ]
  for (const [method, path, body] of refused) {
    const response = await kit.ask('acme', method, `/threads/${id}/${path}`, body)
    expect([
      path,
      response.status,
      ((await response.json()) as { error: { code: string } }).error.code,
    ]).toEqual([path, 409, 'THREAD_TERMINATED'])
  }
  await kit.runtime.idle()
  expect(await kit.json('acme', 'GET', `/threads/${id}`)).toMatchObject({ lifecycle: 'terminated' })
  expect(await kit.json('acme', 'GET', `/threads/${id}/messages`)).toEqual(before)
})

/** A worker that has a worker, three deep. */
function nested(depth: number): ReturnType<typeof defineAgent> {
  const name = `level_${depth}`
  const [below] = depth < 3 ? [nested(depth + 1)] : []
  const speaks = [says(`${name} begins. `), waits(0), says('And continues. '), waits(0)]
  return defineAgent({
    name,
    type: 'dual_ai',
    exposeAsTool: true,
    toolDescription: 'Does the work.',
    maxSessionTurns: 4,
    sideA: {
      prompt: definePrompt({
        name: `${name}_a`,
        prompt: 'Work.',
        model: scripted(({ messages }) =>
          below && messages.at(-1)?.type === 'user'
            ? [...speaks, calls(below.name, { task: 'Dig.' })]
            : [...speaks, calls('done', { text: `${name} is done.` })],
        ),
        tools: [done, ...(below ? [{ name: below, initUserMessageProperty: 'task' }] : [])],
        requiredSchema: z.object({ task: z.string() }),
      }),
      sessionStop: { name: done, messageProperty: 'text' },
    },
    sideB: {
      prompt: definePrompt({
        name: `${name}_b`,
        prompt: 'Look.',
        model: scripted(() => says('Continue.')),
      }),
    },
  })
}

/** Has two of them work, one after the other or both at the same time. */
const bossOf = (atOnce: boolean): ReturnType<typeof defineAgent> =>
  defineAgent({
    name: 'boss',
    sideA: {
      prompt: definePrompt({
        name: 'boss',
        prompt: 'Lead.',
        model: scripted(({ messages }) => {
          const [first, second] = [
            calls('level_1', { task: 'Dig.' }),
            calls('level_1', { task: 'Dig again.' }),
          ]
          if (messages.length === 1) return atOnce ? [first, second] : first
          return messages.length === 3 && !atOnce ? second : says('All done.')
        }),
        tools: [{ name: nested(1), initUserMessageProperty: 'task' }],
      }),
    },
  })

async function startBoss(atOnce: boolean): Promise<{ kit: Kit; id: string; client: Client }> {
  const kit = await startKit({ runtime: { agents: [bossOf(atOnce)] } })
  kits.push(kit)
  const { id } = await kit.runtime.threads.create({ agent: 'boss', tenant: 'acme', message: 'Go.' })
  const fetch: typeof globalThis.fetch = (url, init) => kit.http.fetch(new Request(url, init))
  const client = createClient({ url: 'http://localhost', apiKey: KEYS.acme.key, fetch })
  return { kit, id, client }
}

test('UAP-120 a tree stream shows events of nested agents in place, with their hierarchy', async () => {
  const { id, client } = await startBoss(false)
  const events: TreeEvent[] = []
  for await (const event of client.streamTree(id)) {
    events.push(event)
    if (event.threadId === id && event.event.type === 'session_end') break
  }
  const outline = events
    .filter(({ event }) => event.type === 'session_start' || event.type === 'session_end')
    .map(({ path, event }) => `${'  '.repeat(path.length - 1)}${path.at(-1)} ${event.type}`)
  const one = [
    '  level_1 session_start',
    '    level_2 session_start',
    '      level_3 session_start',
    '      level_3 session_end',
    '    level_2 session_end',
    '  level_1 session_end',
  ]
  expect(outline).toEqual(['boss session_start', ...one, ...one, 'boss session_end'])
  expect(new Set(events.map(({ path }) => path.join('/')))).toEqual(
    new Set(['boss', 'boss/level_1', 'boss/level_1/level_2', 'boss/level_1/level_2/level_3']),
  )
  expect(events.some(({ path, event }) => path.length === 4 && event.type === 'text_delta')).toBe(
    true,
  )
})

test('UAP-120 a reader of a tree that goes and comes back misses and doubles nothing at any depth', async () => {
  for (const size of [1, 3, 7, 20]) {
    const { kit, id, client } = await startBoss(true)
    const got = new Map<string, number[]>()
    let after = '0'
    let left = Infinity
    while (left > 0) {
      let count = 0
      for await (const event of client.streamTree(id, { after })) {
        after = event.position
        if (!event.event.type.endsWith('_delta')) {
          got.set(event.threadId, [
            ...(got.get(event.threadId) ?? []),
            Math.trunc(Number(event.id)),
          ])
          left -= 1
        }
        if (event.threadId === id && event.event.type === 'session_end') {
          // Children may have been heard less far than their parent: there is this much to come.
          await kit.runtime.idle()
          left = (await kit.runtime.threads.list({ rootId: id })).reduce(
            (sum, { seq }) => sum + seq,
            0,
          )
          for (const seqs of got.values()) left -= seqs.length
        }
        if (++count >= size || left <= 0) break
      }
    }
    const threads = await kit.runtime.threads.list({ rootId: id })
    expect(threads).toHaveLength(7)
    for (const { id: threadId, seq } of threads)
      expect(got.get(threadId)).toEqual(Array.from({ length: seq }, (_, index) => index + 1))
  }
})
