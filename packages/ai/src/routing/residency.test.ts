import { describe, expect, test } from 'vitest'
import { embedding } from '../embedding.ts'
import { llm } from '../llm.ts'
import type { ModelReference } from '../contract/provider.ts'
import { vendorServer } from '../testing/vendor-server/vendor-server.ts'
import { fails, says } from '../testing/scripted.ts'
import { NoRetry } from '../transport/retry.ts'
import { bedrockWith } from '../vendors/bedrock.ts'
import { openai } from '../vendors/openai.ts'
import { vertex } from '../vendors/vertex.ts'
import { fallback } from './fallback.ts'
import { rateLimit } from './rate-limit.ts'
import { RateLimiter } from './rate-limiter.ts'
import { route } from './route.ts'
import type { Residency } from './residency.ts'

const bedrock = bedrockWith()
const at = (region: string, id = 'anthropic.claude-x'): ModelReference => bedrock(id, { region })
const google = (location: string): ModelReference => vertex('gemini-2.5-pro', { project: 'p', location }) // prettier-ignore

/** The hosts that are asked when every model of a fallback or route is tried. */
async function asked(
  combine: typeof fallback | typeof route,
  models: readonly ModelReference[],
  residency: Residency | undefined,
  failures = models.length,
) {
  const hosts: string[] = []
  const fetch = async (url: string): Promise<Response> => {
    hosts.push(new URL(url).host)
    if (hosts.length <= failures) return Response.json({ message: 'Busy' }, { status: 503 })
    return Response.json({ output: { message: { content: [{ text: 'Hi' }] } }, stopReason: 'end_turn' }) // prettier-ignore
  }
  const config = { apiKey: 'k', fetch, retryStrategy: new NoRetry() }
  const members = models.map((model) => ({ model, config }))
  const model = combine(members as never, { residency })
  const result: unknown = await llm({ model })
    .generate('Hi')
    .catch((error: unknown) => error)
  return { hosts, result }
}

describe('a fallback', () => {
  const models = [at('us-east-1'), at('eu-central-1'), google('us-central1'), google('europe-west4')] // prettier-ignore

  test('tries no model outside, whatever fails', async () => {
    const { hosts } = await asked(fallback, models, 'eu')
    expect(hosts).toEqual([
      'bedrock-runtime.eu-central-1.amazonaws.com',
      'europe-west4-aiplatform.googleapis.com',
    ])
  })

  test('tries all of them without the rule', async () => {
    expect((await asked(fallback, models, undefined)).hosts).toHaveLength(4)
  })

  test('says in the answer which rule held, where it was made and what was left out', async () => {
    const { result } = await asked(fallback, models, 'eu', 0)
    expect(result).toMatchObject({
      response: {
        metadata: {
          fallback: {
            residency: 'eu',
            model: 'bedrock/anthropic.claude-x',
            region: 'eu-central-1',
            excluded: ['bedrock/anthropic.claude-x', 'vertex/gemini-2.5-pro'],
          },
        },
      },
    })
  })
})

test.each<[string, ModelReference]>([
  ['another area', at('us-east-1')],
  ['London, which is not in the Union', at('eu-west-2')],
  ['Zurich, which is not in the Union', google('europe-west6')],
  ['a profile that may answer from anywhere', at('eu-central-1', 'global.anthropic.claude-x')],
  ['a profile of another area', at('eu-central-1', 'us.anthropic.claude-x')],
  ['a region that is not in the area of its profile', at('us-east-1', 'eu.anthropic.claude-x')],
  ['everywhere', google('global')],
  ['a vendor that does not say where', openai('gpt-5')],
])('a model in %s is refused with a typed error, and nothing is sent', async (_, model) => {
  for (const combine of [fallback, route]) {
    const { hosts, result } = await asked(combine, [model], 'eu')
    expect(hosts).toEqual([])
    expect(result).toMatchObject({
      code: 'INVALID_REQUEST',
      vendorCode: 'RESIDENCY',
      vendorType: '"eu"',
      hint: expect.stringContaining(`${model.provider.name}/${model.modelId}`),
    })
  }
})

test.each<[ModelReference, Residency]>([
  [at('eu-west-3'), 'eu'],
  [at('eu-west-1', 'eu.anthropic.claude-x'), 'eu'],
  [google('eu'), 'eu'],
  [at('us-gov-west-1'), 'us'],
  [at('ap-southeast-2'), (region) => region?.startsWith('ap-') === true],
])('%# is inside', async (model, residency) => {
  expect((await asked(route, [model], residency)).hosts).toHaveLength(1)
})

test('a function that does not say true, or throws, lets nothing through', async () => {
  const truthy = (() => 'yes') as unknown as Residency
  expect((await asked(fallback, [at('eu-central-1')], truthy)).hosts).toEqual([])
  const failing = (): boolean => {
    throw new Error('no list of regions')
  }
  expect((await asked(fallback, [at('eu-central-1')], failing)).hosts).toEqual([])
})

test('an address of the caller is nowhere, unless its region is declared', async () => {
  const server = vendorServer([says('Hi')])
  const config = { apiKey: 'k', fetch: server.fetch, baseUrl: 'http://vendor.test' }
  const model = at('eu-central-1')
  const failed = llm({ model: fallback([{ model, config }], { residency: 'eu' }) }).generate('Hi')
  await expect(failed).rejects.toMatchObject({ vendorCode: 'RESIDENCY' })
  const called = llm({ model: fallback([model], { residency: 'eu' }), config }).generate('Hi')
  await expect(called).rejects.toMatchObject({ vendorCode: 'RESIDENCY' })
  expect(server.requests).toEqual([])
  const declared = fallback([{ model, config, region: 'eu-central-1' }], { residency: 'eu' })
  expect((await llm({ model: declared }).generate('Hi')).text).toBe('Hi')
})

test('the rule holds through a rate limit, another combination, a stream and embeddings', async () => {
  const server = vendorServer([fails({ code: 'PROVIDER_ERROR' }), says('Hi')])
  const config = { apiKey: 'k', fetch: server.fetch, retryStrategy: new NoRetry() }
  const limiter = new RateLimiter({ requests: 9, intervalMs: 1000 })
  const inner = fallback([{ model: at('eu-central-1'), config }, { model: at('eu-central-1'), config }]) // prettier-ignore
  const model = fallback([{ model: openai('gpt-5'), config }, rateLimit(inner, { limiter })], {
    residency: 'eu',
  })
  const { text } = await llm({ model }).stream('Hi').turn
  expect(text).toBe('Hi')
  expect(server.requests.map(({ host }) => host)).toEqual(['bedrock-runtime.eu-central-1.amazonaws.com', 'bedrock-runtime.eu-central-1.amazonaws.com']) // prettier-ignore
  const vectors = openai('text-embedding-3-small')
  const outside = embedding({ model: fallback([{ model: vectors, config }], { residency: 'eu' }) })
  await expect(outside.embed(['a'])).rejects.toMatchObject({ vendorCode: 'RESIDENCY' })
  const inside = embedding({ model: fallback([{ model: vectors, config, region: 'eu' }], { residency: 'eu' }) }) // prettier-ignore
  expect((await inside.embed(['a'])).embeddings).toHaveLength(1)
})
