import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { modelCatalogue } from '@skein/ai/catalogue'
import { peersOf } from '../../../scripts/peers.ts'
import { root, run } from '../../../scripts/workspace.ts'

// What type tests cannot check: types of SDKs that only tests install, declarations that a user's package
// writes, and ids against the catalogue, which exists at run time.

const peers = peersOf('packages/ai/test/peers')
const sdks = {
  groq: 'groq-sdk/resources/chat/completions',
  mistral: '@mistralai/mistralai/models/components',
  openrouter: '@openrouter/sdk/models',
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
    const here = relative(join(peers.folder, 'compiled'), import.meta.dirname)
    const { code, output } = await compile(
      peers.folder,
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

describe('known model ids are in the catalogue', () => {
  /** Names that point to other models. */
  const aliases = ['gemini-pro-latest', 'gemini-flash-latest', 'gemini-flash-lite-latest']

  test.each(['google', 'mistral', 'xai', 'deepseek', 'cerebras', 'moonshot'])('%s', (vendor) => {
    const page = readFileSync(join(root, 'packages/ai/src/vendors', `${vendor}.ts`), 'utf8')
    const declared = /^type ModelId =([^=]*?)\n\n/m.exec(page)?.[1] ?? ''
    const ids = [...declared.matchAll(/'([^']+)'/g)].map(([, id]) => id!)
    expect(ids.length).toBeGreaterThan(3)
    const unknown = ids.filter((id) => !(`${vendor}/${id}` in modelCatalogue))
    expect(unknown.filter((id) => !aliases.includes(id))).toEqual([])
  })
})
