import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { format } from 'prettier'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type History, llm } from '@skein/ai'
import { peersOf } from '../../../../scripts/peers.ts'
import { vendorSdks, type VendorSdk } from './sdks.ts'
import { differences, ourCall, type TaskName, taskNames } from './tasks.ts'

const folder = 'peers/sdks'
const root = join(import.meta.dirname, '..', '..', '..', '..')
const peers = peersOf('sdks')
const { dependencies } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>
}

interface Sent {
  readonly path: string
  readonly body: unknown
}

describe.runIf(peers.isInstalled)("our bodies and those of the vendors' own SDKs", () => {
  let server: Server
  let origin = ''
  let seen: Sent[] = []

  beforeAll(async () => {
    // Refuses every request after it has been noted: no SDK repeats after 400.
    server = createServer((request, response) => {
      let text = ''
      request.setEncoding('utf8')
      request.on('data', (chunk: string) => (text += chunk))
      request.on('end', () => {
        seen.push({ path: request.url ?? '', body: JSON.parse(text) as unknown })
        response.writeHead(400, { 'content-type': 'application/json' })
        response.end('{"error":{"message":"noted"}}')
      })
    })
    // A connection that the server is just closing would fail the next request of an SDK.
    server.keepAliveTimeout = 0
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })

  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })

  async function caught(run: () => Promise<unknown>): Promise<Sent> {
    seen = []
    const failure: unknown = await run().then(
      () => undefined,
      (error: unknown) => error,
    )
    const [first, ...more] = seen
    if (!first || more.length > 0)
      throw new Error(`${seen.length} requests were sent.`, { cause: failure })
    return first
  }

  async function compare(vendor: VendorSdk, task: TaskName): Promise<readonly string[]> {
    const theirs = await caught(async () => {
      const answer = await vendor.send(peers, origin, task)
      // A stream is asked for when it is first read.
      for await (const _ of answer as AsyncIterable<unknown>) break
    })
    const { options, given, isStreaming } = ourCall(task, vendor.params)
    const model = llm({
      ...options,
      model: vendor.model,
      config: { apiKey: 'k', baseUrl: `${origin}${vendor.prefix}` },
    })
    const ours = await caught(async () =>
      isStreaming
        ? await model.stream(...(given as [History])).turn
        : await model.generate(...(given as [History])),
    )
    expect(ours.path).toBe(theirs.path)
    return differences(ours.body, theirs.body)
  }

  test('are equal, or the difference has a reason', { timeout: 60_000 }, async () => {
    const rows: string[] = []
    const notes: string[] = []
    const unexplained: string[] = []
    const unused: string[] = []
    for (const vendor of vendorSdks) {
      const used = new Map<string, number>()
      const cells: string[] = []
      for (const task of taskNames) {
        if (vendor.absent?.[task] !== undefined) {
          cells.push('not offered')
          continue
        }
        const reasons = new Set<string>()
        for (const difference of await compare(vendor, task)) {
          const reason = vendor.explained?.find(([pattern]) => pattern.test(difference))?.[1]
          if (reason === undefined) unexplained.push(`${vendor.name} ${task}: ${difference}`)
          else reasons.add(reason)
        }
        const numbers = [...reasons].map((reason) => {
          if (!used.has(reason)) {
            notes.push(`${vendor.name}: ${reason}.`)
            used.set(reason, notes.length)
          }
          return used.get(reason)!
        })
        cells.push(numbers.length === 0 ? 'equal' : `see ${numbers.join(', ')}`)
      }
      for (const [, reason] of vendor.explained ?? [])
        if (!used.has(reason)) unused.push(`${vendor.name}: ${reason}`)
      rows.push(
        `| ${vendor.name} | ${vendor.sdk} ${dependencies[vendor.sdk]} | ${cells.join(' | ')} |`,
      )
    }
    expect(unexplained).toEqual([])
    expect(unused).toEqual([])
    const page = [
      '---',
      'title: Request bodies of vendors',
      '---',
      '',
      '# Request bodies, compared with the SDK of each vendor',
      '',
      'Written by `packages/ai/test/vendor-bodies`, which sends each task once through the SDK of the',
      'vendor and once through `@skein/ai` to a local server, and compares path and body. Fails where a',
      'difference has no reason. The SDK versions are pinned in `peers/sdks`.',
      '',
      'The SDKs of Google, Mistral and OpenRouter check and rewrite what they are given. Those of OpenAI,',
      'Anthropic, Groq, Cerebras and Ollama send it as it is, so there the task was written by hand in the',
      'form that their types and examples have.',
      '',
      'The SDK of Google asks version `v1` of the API since its version 3, and is set to `v1beta` here, which',
      '`@skein/ai` asks: it has all of `v1`, and features before they arrive there. `config.baseUrl` takes the other.',
      '',
      'DeepSeek, Moonshot and xAI publish no SDK for npm. What the AI SDK packages for them send with every',
      'option they have is compared with our types instead (`packages/ai/test/vendor-types.sdks.test.ts`).',
      '',
      `| vendor | SDK | ${taskNames.join(' | ')} |`,
      `| --- | --- | ${taskNames.map(() => '---').join(' | ')} |`,
      ...rows,
      '',
      ...notes.map((note, index) => `${index + 1}. ${note}`),
      '',
    ].join('\n')
    const path = join(root, 'docs', 'vendor-bodies.md')
    const text = await format(page, { parser: 'markdown' })
    await expect(text).toMatchFileSnapshot(path)
  })
})
