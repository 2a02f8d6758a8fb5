import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { root, run } from '../../../scripts/workspace.ts'

// A type that the compiler infers for an export of a user's package has to be reachable through a public
// name, or the declarations of that package cannot be written (TS2883, TS4023). Option types need no name:
// they are never inferred.
const source = `
import { agent, AgentState } from '@skein/agents'
import { memoryCheckpoints, sqliteCheckpoints } from '@skein/agents/checkpoint'
import { loop, plan, react } from '@skein/agents/execution'
import { recordEvents } from '@skein/agents/testing'
import { checkTranscript, recordFetch } from '@skein/ai/testing'
import { translateParams } from '@skein/ai/gateway'
import { anyOf, logging, maxSteps, maxTime } from '@skein/agents/middleware'
import { defineTaskClass, defineVerifier, governed, governor, rules } from '@skein/governance'
import { approvals, generateKey } from '@skein/governance/approvals'
import { leafHash, memoryLog, parseCheckpoint, signStatement, toStatement, verifyLog } from '@skein/governance/audit'
import {
  createRegistry, createRuntime, defineAgent, defineEffect, defineEndpoint, defineHook, defineModel,
  definePrompt, defineTool, inProcessDispatcher, memoryStore, sqliteStore, StoreError, toolFrom,
} from '@skein/runtime'
import { createClient } from '@skein/server/client'
import { createHttp, jwtAuth, startWebhooks } from '@skein/server'
import { threadView } from '@skein/runtime/view'
import { foldThread, parseJson, parseThread, safeParseThread, threadStats, toModelMessages, validateThread } from '@skein/threads'
import { toUIMessages } from '@skein/threads/ai-sdk'
import { toAgUiMessages } from '@skein/threads/ag-ui'
import { fromPydanticAI } from '@skein/threads/pydantic-ai'
import { fromUppMessages, toUppMessages } from '@skein/threads/upp'

type Given<Function extends (...given: never[]) => unknown> = Parameters<Function>
const given = null as never

export const state = AgentState.initial()
export const run = agent(...(given as Given<typeof agent>)).generate('x', state)
export const strategies = [loop(), plan(), react()]
export const stops = [anyOf(maxSteps(1)), maxTime(1), logging()]
export const transcript = checkTranscript(...(given as Given<typeof checkTranscript>))
export const recording = recordFetch(...(given as Given<typeof recordFetch>))
export const params = translateParams(...(given as Given<typeof translateParams>))
export const events = recordEvents(...(given as Given<typeof recordEvents>))
export const checkpoints = [memoryCheckpoints(), sqliteCheckpoints(given)]

export const verifier = defineVerifier(...(given as Given<typeof defineVerifier>))
export const taskClass = defineTaskClass(...(given as Given<typeof defineTaskClass>))
export const limits = taskClass.limits
export const policy = rules(...(given as Given<typeof rules>))
export const judge = governor(given)
export const opened = judge.open(...(given as Given<typeof judge.open>))
export const desk = approvals(given)
export const redeemed = desk.redeem(...(given as Given<typeof desk.redeem>))
export const key = generateKey()
export const log = memoryLog()
export const verdict = verifyLog(...(given as Given<typeof verifyLog>))
export const hash = leafHash(given)
export const statement = toStatement(...(given as Given<typeof toStatement>))
export const signed = signStatement(...(given as Given<typeof signStatement>))
export const head = parseCheckpoint(given)
export { governed }

export const greet = defineTool({ name: 'greet', description: 'x', risk: 'read_only', execute: () => 'hi' })
export const taken = toolFrom(...(given as Given<typeof toolFrom>))
export const hook = defineHook({ id: 'h', hook: 'filter_messages', execute: (_state, messages) => messages })
export const effect = defineEffect(...(given as Given<typeof defineEffect>))
export const endpoint = defineEndpoint(...(given as Given<typeof defineEndpoint>))
export const definitions = [defineAgent(given), defineModel(given), definePrompt(given)]
export const registry = createRegistry(given)
export const stores = { memory: memoryStore(), sqlite: sqliteStore(given) }
export const claimed = stores.memory.claim(...(given as Given<typeof stores.memory.claim>))
export const runtime = createRuntime(given)
export const sent = (async () => (await runtime).threads.send('t', given))()
export const codeOf = (error: StoreError) => error.code
export const dispatcher = inProcessDispatcher(given)
export const http = createHttp(given, given)
export const routes = http.routes
export const verify = jwtAuth(given)
export const webhooks = startWebhooks(given, given)
export const client = createClient(given)
export const view = threadView(...(given as Given<typeof threadView>))

export const thread = parseThread('')
export const read = [safeParseThread(''), validateThread(thread), threadStats(thread), foldThread([])]
export const messages = [toModelMessages(thread, given), toUIMessages(thread), toAgUiMessages(given), toUppMessages(thread)]
export const json = parseJson('')
export const converted = fromPydanticAI(...(given as Given<typeof fromPydanticAI>))
export const imported = fromUppMessages([])
`

test('a package that exports what the makers return can write its declarations', async () => {
  const folder = join(root, '.tmp', `declarations-${process.pid}`)
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'source.ts'), source)
  const options = { declaration: true, emitDeclarationOnly: true, outDir: 'out', rootDir: '/' }
  const config = {
    extends: join(root, 'tsconfig.base.json'),
    compilerOptions: { ...options, allowImportingTsExtensions: false, isolatedDeclarations: false },
    files: ['source.ts'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const { output } = await run(process.execPath, [tsc, '-p', folder], { quiet: true })
  expect(output).toBe('')
  const written = readFileSync(join(folder, 'out', folder, 'source.d.ts'), 'utf8')
  expect(written).toContain('import("@skein/runtime").')
  expect(written).not.toMatch(/: any\b/)
}, 120_000)
