/**
 * What every claimed runtime must do, with the packages as they are published: load every entry, call a model over
 * a socket, run agents, fold threads, govern calls, and run the examples. It uses nothing that only Node has but
 * files, for the examples. Started by `scripts/runtimes.ts` in a folder where the packages are installed; prints one
 * JSON object.
 */
import { readFileSync } from 'node:fs'
import { format } from 'node:util'
import { agent, AgentState } from '@skein/agents'
import { defer, LinearBackoff, llm, tool } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { calls, says, scripted, startVendorServer } from '@skein/ai/testing'
import {
  canonicalJson,
  decodeBase64,
  encodeBase64,
  encodeSse,
  seededRandom,
  sequentialIds,
  manualClock,
  sha256,
  sha256Hex,
  SseDecoder,
  type SseEvent,
} from '@skein/base'
import { actionDigest, hashJson, type Action, type ApprovalRequest } from '@skein/governance'
import { approvals, approve, generateKey, memorySpent } from '@skein/governance/approvals'
import {
  emptyFoldedThread,
  foldThread,
  parseThread,
  reduceThread,
  stringifyThread,
} from '@skein/threads'
import { threadFromEvents } from '@skein/threads/events'
import { z } from 'zod'
import { opening, response } from '../../packages/threads/test/sample-events.ts'

interface Task {
  /** Entries to import. */
  readonly entries: readonly string[]
  readonly examples: ReadonlyArray<{ readonly file: string; readonly expected: string }>
  /** Addresses of a vendor that another process plays. */
  readonly vendors: Readonly<Record<'openai' | 'anthropic' | 'google' | 'ollama', string>>
}

/** What the suite found. Digests are compared between runtimes. */
export interface SuiteResult {
  readonly checks: number
  readonly failures: readonly string[]
  readonly digests: Readonly<Record<string, string>>
}

const task = JSON.parse(readFileSync('task.json', 'utf8')) as Task
const failures: string[] = []
const digests: Record<string, string> = {}
let checks = 0

async function check(title: string, body: () => unknown): Promise<void> {
  checks++
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('not done after 10 s')), 10_000)
  })
  try {
    await Promise.race([body(), late])
  } catch (error) {
    failures.push(
      `${title}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    )
  } finally {
    clearTimeout(timer)
  }
}

function equal(actual: unknown, expected: unknown): void {
  const [a, b] = [actual, expected].map((value) => JSON.stringify(value))
  if (a !== b) throw new Error(`${a} is not ${b}`)
}

const random = seededRandom(20_26)
const whole = (below: number): number => Math.floor(random() * below)
const bytes = (length: number): Uint8Array<ArrayBuffer> =>
  Uint8Array.from({ length }, () => whole(256))
const text = (length: number): string =>
  Array.from({ length }, () => ['a', 'é', '漢', '😀', '\n', '\r', '"', ': ', '\\'][whole(9)]).join(
    '',
  )

for (const entry of task.entries) await check(`import ${entry}`, () => import(entry))

await check('base: server-sent events are the same however they arrive in pieces', () => {
  for (let sample = 0; sample < 200; sample++) {
    const sent: SseEvent[] = Array.from({ length: 1 + whole(4) }, (_, index) => ({
      event: 'message',
      data: text(whole(12)).replaceAll('\r', ''),
      id: String(index),
    }))
    const all = new TextEncoder().encode(sent.map((event) => encodeSse(event)).join(''))
    const decoder = new SseDecoder()
    const seen: SseEvent[] = []
    for (let at = 0; at < all.length;) {
      const end = at + 1 + whole(7)
      seen.push(...decoder.push(all.subarray(at, end)))
      at = end
    }
    equal(
      seen.map(({ data }) => data),
      sent.map(({ data }) => data),
    )
  }
})

await check('base: hashes and base64 agree with the platform', async () => {
  for (let length = 0; length < 200; length++) {
    const data = bytes(length)
    equal([...decodeBase64(encodeBase64(data))], [...data])
    equal(encodeBase64(data), btoa(String.fromCharCode(...data)))
    const native = new Uint8Array(await crypto.subtle.digest('SHA-256', data))
    equal([...sha256(data)], [...native])
  }
})

await check('base: canonical JSON has the same bytes everywhere', () => {
  const value = (depth: number): unknown =>
    depth === 0 || whole(3) === 0
      ? [text(5), whole(1e9) / 1e4, Number(`${random()}e${whole(60) - 30}`), true, null][whole(5)]
      : whole(2) === 0
        ? Array.from({ length: whole(4) }, () => value(depth - 1))
        : Object.fromEntries(Array.from({ length: whole(4) }, () => [text(3), value(depth - 1)]))
  const all = Array.from({ length: 300 }, () => canonicalJson(value(4) as never))
  for (const one of all) equal(canonicalJson(JSON.parse(one)), one)
  digests['canonical JSON'] = sha256Hex(all.join('\n'))
})

const add = tool({
  name: 'add',
  description: 'Adds two numbers.',
  parameters: z.object({ a: z.number(), b: z.number() }),
  run: ({ a, b }) => a + b,
})

const models = { openai, anthropic, google, ollama }
for (const [name, vendor] of Object.entries(models) as Array<
  [keyof typeof models, (id: string) => ReturnType<typeof openai>]
>) {
  const config = { baseUrl: task.vendors[name], apiKey: 'key' }
  await check(`ai: ${name} over a socket, streamed, with a tool`, async () => {
    const stream = llm({ model: vendor('m'), config, tools: [add] }).stream('2 + 3?')
    let heard = ''
    let pieces = 0
    for await (const event of stream)
      if (event.type === 'text_delta') {
        heard += event.delta.text
        pieces++
      }
    const turn = await stream.turn
    equal([heard, turn.response.text], ['It is 5. Grüße!', 'It is 5. Grüße!'])
    equal(
      turn.toolExecutions.map(({ toolName, result }) => [toolName, result]),
      [['add', 5]],
    )
    if (pieces < 3) throw new Error(`the text came in ${pieces} pieces`)
  })
  await check(`ai: ${name} over a socket, in one piece`, async () => {
    const turn = await llm({ model: vendor('m'), config, tools: [add] }).generate('2 + 3?')
    equal(turn.response.text, 'It is 5. Grüße!')
  })
}

await check(
  'ai: a server in this runtime; limits are retried, an abort ends the call',
  async () => {
    const server = await startVendorServer(() => says('one two three four five six'), {
      faults: [{ kind: 'error', code: 'RATE_LIMITED', headers: { 'retry-after': '0.01' } }],
      chunkBytes: 16,
      delayMs: 5,
    } as never)
    try {
      const config = {
        baseUrl: server.baseUrls.anthropic,
        apiKey: 'key',
        retryStrategy: new LinearBackoff({ delay: 1 }),
      }
      const model = llm({ model: anthropic('m'), config })
      equal((await model.generate('hello')).response.text, 'one two three four five six')
      equal(server.requests.length, 2)
      const stop = new AbortController()
      const stream = model.with({ signal: stop.signal }).stream('hello')
      let code: unknown
      try {
        for await (const event of stream) if (event.type === 'text_delta') stop.abort()
      } catch (error) {
        code = (error as { code?: unknown }).code
      }
      await stream.turn.catch((error: { code?: unknown }) => (code ??= error.code))
      equal(code, 'CANCELLED')
    } finally {
      await server.close()
    }
  },
)

await check('agents: a run that waits for a person continues from JSON', async () => {
  const ran: string[] = []
  const remove = tool({
    name: 'remove',
    description: 'Removes a file.',
    parameters: z.object({ file: z.string() }),
    approval: ({ file }) => defer({ kind: 'approval', request: { file } }),
    run: ({ file }) => void ran.push(file),
  })
  const options = { ids: sequentialIds('id-'), clock: manualClock(0) }
  const first = await agent({
    model: scripted([calls('remove', { file: 'a' })]),
    tools: [remove],
    ...options,
  }).generate('tidy up', AgentState.initial(options))
  equal([first.interrupts?.length, ran], [1, []])
  const stored = JSON.stringify(first.state)
  digests['state of an agent'] = sha256Hex(stored)
  const { turn } = await agent({
    model: scripted([says('Done.')]),
    tools: [remove],
    ...options,
  }).resume(AgentState.fromJSON(JSON.parse(stored)), {
    [first.interrupts![0]!.id]: { type: 'approve' },
  })
  equal([turn.response.text, ran], ['Done.', ['a']])
})

await check('threads: every prefix folds as event by event, into the same document', () => {
  const events = [...opening, ...response]
  let state = emptyFoldedThread
  for (const [index, event] of events.entries()) {
    state = reduceThread(state, event)
    equal(foldThread(events.slice(0, index + 1)), state)
  }
  const document = stringifyThread(threadFromEvents(events).value)
  equal(stringifyThread(parseThread(document)), document)
  digests['folded thread'] = sha256Hex(JSON.stringify(state))
  digests['thread document'] = sha256Hex(document)
})

for (const alg of ['Ed25519', 'ES256'] as const)
  await check(`governance: an approval signed with ${alg} opens one action, once`, async () => {
    const { publicJwk, privateJwk: key } = await generateKey({ alg })
    const desk = approvals({
      audience: 'here',
      issuers: { us: { keys: [publicJwk], alg, may: () => true } },
      spent: memorySpent(),
    })
    const args = { wire: 'W-1' }
    const action: Action = {
      request_id: '01890a5d-ac96-774b-bcce-b302099a8057',
      trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
      call_id: 'c1',
      task: 'wires',
      tool: 'reverse_wire',
      risk: 'write_high_risk',
      args,
      args_hash: hashJson(args),
      identity: { agent_id: 'clerk', owner_id: 'bank', control_class: 'human-supervised' },
      depth: 0,
      policy_hash: hashJson('policy'),
    }
    digests['digest of an action'] = actionDigest(action)
    const request: ApprovalRequest = {
      id: 'r1',
      digest: actionDigest(action),
      action,
      expires_at: new Date(Date.now() + 600_000).toISOString(),
      quorum: 1,
      excluded: ['clerk'],
    }
    const signed = { audience: 'here', issuer: 'us', approver: 'pat', key, ttlMs: 60_000 }
    const token = await approve(request, signed)
    for (let sample = 0; sample < 60; sample++) {
      const at = whole(token.length - 1)
      const other = token[at] === 'A' ? 'B' : 'A'
      const forged = token.slice(0, at) + other + token.slice(at + 1)
      // A point is no character of a part, and the last character of a part has bits that carry nothing.
      if (token[at] === '.' || token[at + 1] === '.') continue
      if ((await desk.redeem([forged], request)).ok)
        throw new Error(`accepted with ${other} at ${at}`)
    }
    equal((await desk.redeem([token], request)).ok, true)
    equal((await desk.redeem([token], request)).ok, false)
  })

for (const { file, expected } of task.examples)
  await check(file, async () => {
    equal((await printed(() => import(`./${file}`))).trimEnd(), expected)
  })

console.log(JSON.stringify({ checks, failures, digests } satisfies SuiteResult))
process.exit(0)

/** What a program prints, by `console` and on standard output. */
async function printed(body: () => Promise<unknown>): Promise<string> {
  let output = ''
  const { log } = console
  const { write } = process.stdout
  console.log = (...values: unknown[]) => void (output += `${format(...values)}\n`)
  process.stdout.write = ((part: string) => {
    output += part
    return true
  }) as typeof write
  try {
    await body()
  } finally {
    console.log = log
    process.stdout.write = write
  }
  return output
}
