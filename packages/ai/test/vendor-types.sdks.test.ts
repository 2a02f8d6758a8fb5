import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { modelCatalog } from '@skein/ai/catalog'
import { peersOf } from '../../../scripts/peers.ts'
import { root, run } from '../../../scripts/workspace.ts'

// What type tests cannot check: types of SDKs that only tests install, declarations that a user's package
// writes, and ids against the catalog, which exists at run time.

const peers = peersOf('sdks')
const sdks = {
  groq: 'groq-sdk/resources/chat/completions',
  mistral: '@mistralai/mistralai/models/components',
  openrouter: '@openrouter/sdk/models',
  cerebras: '@cerebras/cerebras_cloud_sdk/resources/chat/completions',
}
const made: string[] = []

afterAll(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true })
})

/** Compiles one file in a folder of its own and returns what the compiler says. */
async function compile(
  parent: string,
  source: string,
  options: Readonly<Record<string, unknown>> = { noEmit: true },
): Promise<{ code: number | null; output: string; folder: string }> {
  const folder = join(parent, `compiled-${process.pid}-${made.length}`)
  made.push(folder)
  mkdirSync(folder, { recursive: true })
  const config = {
    extends: relative(folder, join(root, 'tsconfig.base.json')),
    compilerOptions: { allowImportingTsExtensions: true, ...options },
    files: ['source.ts'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  writeFileSync(join(folder, 'source.ts'), source)
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const { code, output } = await run(process.execPath, [tsc, '-p', folder], { quiet: true })
  return { code, output, folder }
}

test.runIf(peers.isInstalled)(
  'Groq, Mistral and OpenRouter: known parameters and server tools are those of the SDK',
  async () => {
    const here = relative(join(root, '.tmp', 'compiled'), import.meta.dirname)
    const { code, output } = await compile(
      join(root, '.tmp'),
      `
import type { ChatCompletionRequest$Outbound as Mistral } from '${sdks.mistral}'
import type {
  ChatRequest$Outbound as Chat,
  ResponsesRequest$Outbound as Responses,
  WebFetchServerTool$Outbound as WebFetch,
  WebSearchServerToolOpenRouter$Outbound as WebSearch,
} from '${sdks.openrouter}'
import type { ChatCompletionCreateParamsNonStreaming as GroqChat } from '${sdks.groq}'
import { groq } from '@skein/ai/groq'
import { mistral } from '@skein/ai/mistral'
import { openrouter } from '@skein/ai/openrouter'
import { openrouterTools } from '@skein/ai/server-tools'
import type { Difference, KnownIds, KnownParams, Literals, None } from '${here.replaceAll('\\', '/')}/vendor-types.ts'

const models = {
  groq: groq('m'),
  mistral: mistral('m'),
  chat: openrouter('m'),
  responses: openrouter('m', { api: 'responses' }),
}
type Models = typeof models
type Owned = 'model' | 'messages' | 'input' | 'stream'
function same<_Found extends None>(): void {}

same<Difference<KnownParams<Models['groq']>, GroqChat, Owned>>()
same<Difference<KnownParams<Models['mistral']>, Mistral, Owned>>()
same<Difference<KnownParams<Models['chat']>, Chat, Owned>>()
same<Difference<KnownParams<Models['responses']>, Responses, Owned>>()
// @ts-expect-error a name of ours that the SDK has not, and one of the SDK that we have not
same<Difference<{ storre?: boolean }, { store?: boolean }>>()

const ids: Literals<GroqChat['model']> = 'm' as KnownIds<typeof groq>
void ids
same<Difference<ReturnType<typeof openrouterTools.webSearch>, WebSearch>>()
same<Difference<ReturnType<typeof openrouterTools.webFetch>, WebFetch>>()
type Options<Helper extends (...given: never[]) => { parameters: object }> = ReturnType<Helper>['parameters']
type Not<A, B> = Exclude<keyof A, keyof NonNullable<B>>
const none: readonly never[] = [] as readonly (
  | Not<Options<typeof openrouterTools.webSearch>, WebSearch['parameters']>
  | Not<Options<typeof openrouterTools.webFetch>, WebFetch['parameters']>
)[]
void none
`,
    )
    expect(output).toBe('')
    expect(code).toBe(0)
  },
  120_000,
)

/** A model of an AI SDK provider, as far as it is used here. */
type Sending = { doGenerate(options: object): Promise<unknown> }
type Connect = (settings: { apiKey: string; fetch: typeof fetch }) => (id: string) => Sending

/** Has an AI SDK provider send a request with every option that it has, and returns the body. */
async function sentBy(connect: Connect, id: string, options: object): Promise<object> {
  let body = ''
  const fetch = async (_: unknown, init?: RequestInit): Promise<Response> => {
    body = String(init?.body)
    return new Response('{"error":{"message":"x"}}', { status: 400 })
  }
  const prompt = [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }]
  const common = { prompt, maxOutputTokens: 9, temperature: 0.5, topP: 0.9, topK: 4, seed: 7 }
  const sending = connect({ apiKey: 'k', fetch })(id).doGenerate({ ...common, ...options })
  await expect(sending).rejects.toThrow('x')
  const { model: _model, messages: _messages, input: _input, ...params } = JSON.parse(body)
  return params as object
}

// DeepSeek, Moonshot and xAI publish no SDK for npm; the AI SDK's packages for them are the nearest to one.
test.runIf(peers.isInstalled)(
  'Cerebras, DeepSeek, Moonshot and xAI: known parameters and server tools are those that clients send',
  async () => {
    const { createDeepSeek } = await peers.load<{ createDeepSeek: Connect }>('@ai-sdk/deepseek')
    const { createMoonshotAI } = await peers.load<{ createMoonshotAI: Connect }>(
      '@ai-sdk/moonshotai',
    )
    const { createXai } = await peers.load<{ createXai: Connect }>('@ai-sdk/xai')
    const chat = { logprobs: true, topLogprobs: 2 }
    const sampling = { frequencyPenalty: 0.1, presencePenalty: 0.1, stopSequences: ['.'] }
    const deepseek = await sentBy(createDeepSeek, 'deepseek-chat', {
      ...sampling,
      responseFormat: { type: 'json' },
      providerOptions: {
        deepseek: {
          ...chat,
          userId: 'u',
          thinking: { type: 'enabled' },
          reasoningEffort: 'max',
        },
      },
    })
    const moonshotOptions = {
      ...chat,
      promptCacheKey: 'k',
      safetyIdentifier: 's',
      prediction: { type: 'content', content: 'x' },
    }
    const moonshot = await Promise.all([
      sentBy(createMoonshotAI, 'kimi-k3', {
        providerOptions: { moonshotai: { ...moonshotOptions, reasoningEffort: 'max' } },
      }),
      sentBy(createMoonshotAI, 'kimi-k2.6', {
        ...sampling,
        providerOptions: {
          moonshotai: { thinking: { type: 'enabled' }, reasoningHistory: 'preserved' },
        },
      }),
    ])
    const tool = (name: string, args: object = {}): object => ({
      type: 'provider',
      id: `xai.${name}`,
      name,
      args,
    })
    const { tools, ...xai } = (await sentBy(createXai, 'grok-4.6', {
      responseFormat: { type: 'json' },
      providerOptions: {
        xai: {
          ...chat,
          reasoningEffort: 'xhigh',
          minP: 0.1,
          maxTurns: 3,
          parallelToolCalls: true,
          promptCacheKey: 'k',
          safetyIdentifier: 's',
          serviceTier: 'priority',
          store: false,
          previousResponseId: 'r',
          user: 'u',
          include: ['no_inline_citations', 'code_interpreter_call.outputs'],
        },
      },
      tools: [
        tool('web_search', { allowedDomains: ['a.org'], enableImageSearch: true, enableImageUnderstanding: true }), // prettier-ignore
        tool('x_search', { allowedXHandles: ['a'], fromDate: '2026-01-01', toDate: '2026-02-01', enableImageUnderstanding: true, enableVideoUnderstanding: true }), // prettier-ignore
        tool('code_execution'),
        tool('view_image'),
        tool('view_x_video'),
        tool('image_generation', { action: 'generate' }),
        tool('file_search', { vectorStoreIds: ['v'], maxNumResults: 2 }),
        tool('mcp', { serverUrl: 'https://a.org', serverLabel: 'a', serverDescription: 'd', allowedTools: ['t'], headers: { a: 'b' }, authorization: 'x' }), // prettier-ignore
      ],
    })) as { tools: readonly object[] }
    expect(tools).toHaveLength(8)
    // Something was really sent: a provider that ignores its options would prove nothing.
    expect(Object.keys(deepseek)).toContain('user_id')
    expect(Object.keys(xai)).toContain('max_turns')
    const here = relative(join(root, '.tmp', 'compiled'), import.meta.dirname)
    const { code, output } = await compile(
      join(root, '.tmp'),
      `
import type { ChatCompletionCreateParamsNonStreaming as CerebrasChat } from '${sdks.cerebras}'
import { cerebras } from '@skein/ai/cerebras'
import { deepseek } from '@skein/ai/deepseek'
import { moonshot } from '@skein/ai/moonshot'
import { xaiTools } from '@skein/ai/server-tools'
import { xai } from '@skein/ai/xai'
import type { Difference, KnownParams, None } from '${here.replaceAll('\\', '/')}/vendor-types.ts'

const models = { cerebras: cerebras('m'), deepseek: deepseek('m'), moonshot: moonshot('m'), xai: xai('m', { api: 'responses' }) }
type Known<Name extends keyof typeof models> = KnownParams<(typeof models)[Name]>
function same<_Found extends None>(): void {}
// The SDK declares three headers among its parameters.
type Owned = 'model' | 'messages' | 'stream' | 'CF-RAY' | 'X-Amz-Cf-Id' | 'X-delay-time'
same<Difference<Known<'cerebras'>, CerebrasChat, Owned>>()

type XaiTool = ReturnType<(typeof xaiTools)[keyof typeof xaiTools]>
export const sent: [Known<'deepseek'>, Known<'moonshot'>[], Known<'xai'>, XaiTool[]] =
  ${JSON.stringify([deepseek, moonshot, xai, tools])}
// @ts-expect-error a name that nobody sends
export const wrong: Known<'xai'> = { max_trns: 3 }
`,
    )
    expect(output).toBe('')
    expect(code).toBe(0)
  },
  120_000,
)

test('a package that exports models and instances can write its declarations', async () => {
  const { code, output, folder } = await compile(
    join(root, '.tmp'),
    `
import { llm, tool } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { openai } from '@skein/ai/openai'
import { openrouter } from '@skein/ai/openrouter'
import { anthropicTools, googleTools, openaiTools } from '@skein/ai/server-tools'

export const vendors = { openai, anthropic }
export const models = [openai('gpt-5'), anthropic('m'), google('m'), openrouter('m')]
export const model = openai('gpt-5', { api: 'chat' })
export const clock = tool({ name: 'clock', description: '', parameters: {}, run: () => new Date() })
export const bot = llm({ model, tools: [clock], params: { seed: 1 } })
export const other = bot.with({ system: 's' })
export const turn = bot.generate('x')
export const stream = bot.stream('x')
export const server = [openaiTools.webSearch(), anthropicTools.mcp({ mcp_server_name: 'x' }), googleTools.webSearch()]
`,
    {
      declaration: true,
      emitDeclarationOnly: true,
      outDir: 'out',
      rootDir: '/',
      allowImportingTsExtensions: false,
    },
  )
  expect(output).toBe('')
  expect(code).toBe(0)
  const written = readFileSync(join(folder, 'out', folder, 'source.d.ts'), 'utf8')
  expect(written).toContain('bot: import("@skein/ai").LLMInstance<')
  expect(written).not.toMatch(/: any\b/)
}, 120_000)

describe('known model ids are in the catalog', () => {
  /** Names that point to other models. */
  const aliases = ['gemini-pro-latest', 'gemini-flash-latest', 'gemini-flash-lite-latest']

  test.each(['google', 'mistral', 'xai', 'deepseek', 'cerebras', 'moonshot'])('%s', (vendor) => {
    const page = readFileSync(join(root, 'packages/ai/src/vendors', `${vendor}.ts`), 'utf8')
    const declared = /^type ModelId =([^=]*?)\n\n/m.exec(page)?.[1] ?? ''
    const ids = [...declared.matchAll(/'([^']+)'/g)].map(([, id]) => id!)
    expect(ids.length).toBeGreaterThan(3)
    const unknown = ids.filter((id) => !(`${vendor}/${id}` in modelCatalog))
    expect(unknown.filter((id) => !aliases.includes(id))).toEqual([])
  })
})
