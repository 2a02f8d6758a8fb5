import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Message, Middleware as LLMMiddleware } from '@skein/ai'
import type { Middleware as AgentMiddleware } from '@skein/agents'
import { encodeBase64, messageOf, redactSecrets, tryParseJson, uuidV7 } from '@skein/base'
import { EVENT_VERSION } from '@skein/runtime/serving'
import type { EmbeddedRuntime } from '@skein/runtime'
import { type End, InspectedCall, InspectedThread } from './inspected-call.ts'

/** The default folder for the files; `skein studio` reads it. */
const FOLDER = join('.skein', 'inspector')
/** How many files, one per call, are kept; the files of older calls are removed. */
const MAX_FILES = 500

/** Options of `inspector`. */
interface InspectorOptions {
  /** Default `.skein/inspector` of the current folder. */
  readonly folder?: string
  /** The name under which calls are listed. Default: `llm`, or the id of the agent. */
  readonly name?: string
  /**
   * Texts that must not be written to files. Keys passed to a call, and keys in the environment, are removed anyway.
   */
  readonly secrets?: readonly string[]
  /** Called when the record of a call could not be written; the call itself continues. Default: `process.emitWarning`. */
  readonly onError?: (error: unknown) => void
}

/**
 * Creates a middleware for `llm()` and for `agent()` that records each call or run in a file, which `skein
 * studio` shows as a thread: messages, requests as they were sent, tools, usage, times and failures.
 *
 *     const answer = await llm({ model, middleware: [inspector()] }).generate('Hello')
 */
export function inspector(options: InspectorOptions = {}): LLMMiddleware & AgentMiddleware {
  const { folder = FOLDER, name } = options
  const onError = options.onError ?? ((error) => process.emitWarning(messageOf(error)))
  const runs = new Map<string, InspectedCall>()
  const write = async (recording: InspectedCall | undefined, end: End): Promise<undefined> => {
    try {
      if (recording) await writeThread(folder, recording, { end, secrets: options.secrets ?? [] })
    } catch (error) {
      onError(error)
    }
  }
  return {
    name: 'inspector',
    onStart({ state, modality }) {
      if (modality === 'llm') state.set(KEY, new InspectedCall(name ?? 'llm'))
    },
    onCycle(request, _, { state, provider, modelId: model }) {
      recordingIn(state)?.ask({ ...request, provider, model })
    },
    onTurn: (turn, { state }) => write(recordingIn(state), { turn }),
    before({ input, agent }) {
      runs.set(input.id, new InspectedCall(name ?? agent.id, agent.system))
    },
    onInference({ messages, tools, params, model }) {
      const threadRun = messages.map(({ id }) => runs.get(id)).findLast(Boolean)
      const { provider, modelId } = model
      threadRun?.ask({ messages, tools, params, provider: provider.name, model: modelId })
    },
    async after({ input }, { turn }) {
      const run = runs.get(input.id)
      runs.delete(input.id)
      await write(run, { turn })
    },
    // `llm()` calls this hook with the error as first argument, `agent()` with the error as last.
    async onError(one: unknown, two: unknown) {
      if (one instanceof Error)
        return write(recordingIn((two as { readonly state: Map<string, unknown> }).state), {
          error: one,
        })
      const { input } = one as { readonly input: Message }
      const run = runs.get(input.id)
      runs.delete(input.id)
      return write(run, { error: two })
    },
  }
}

const KEY = 'skein inspector'

function recordingIn(state: ReadonlyMap<string, unknown>): InspectedCall | undefined {
  const stateValue = state.get(KEY)
  return stateValue instanceof InspectedCall ? stateValue : undefined
}

/**
 * Writes a recording as an exported thread. The file appears only when it is complete, so no reader sees a part of it.
 */
async function writeThread(
  folder: string,
  recording: InspectedCall,
  { end, secrets }: { readonly end: End; readonly secrets: readonly string[] },
): Promise<void> {
  const id = uuidV7()
  const hidden = [...secrets, ...keysIn(recording), ...keysOfEnvironment()]
  const clean = <T>(value: T): T => JSON.parse(redactSecrets(JSON.stringify(value), hidden)) as T // JSON stays JSON
  const { events, blobs } = new InspectedThread(id, recording, clean).write(end)
  const header = {
    skein: 'thread',
    version: EVENT_VERSION,
    threadId: id,
    agent: recording.agent,
    title: null,
    tags: ['inspected'],
    exportedAt: new Date().toISOString(),
    events: events.length,
    blobs: blobs.size,
  }
  const storedEvents = events.map((event, index) => ({ seq: index + 1, event: clean(event) }))
  const contents = [...blobs].map(([blob, bytes]) => ({ blob, base64: encodeBase64(bytes) }))
  const lines = [header, ...storedEvents, ...contents].map((line) => `${JSON.stringify(line)}\n`)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const file = join(folder, `${id}.jsonl`)
  await writeFile(`${file}.part`, lines.join(''), { mode: 0o600 })
  await rename(`${file}.part`, file)
  const files = (await readdir(folder)).filter(isThreadFile).toSorted()
  for (const old of files.slice(0, -MAX_FILES)) await rm(join(folder, old), { force: true })
}

function isThreadFile(name: string): boolean {
  return name.endsWith('.jsonl')
}

function keysIn({ inferences }: InspectedCall): readonly string[] {
  return inferences.flatMap(({ config }) =>
    typeof config?.apiKey === 'string' ? [config.apiKey] : [],
  )
}

/** Returns the values of environment variables whose names look like secrets, e.g. `OPENAI_API_KEY`. */
function keysOfEnvironment(): readonly string[] {
  return Object.entries(process.env).flatMap(([name, value = '']) =>
    /(?:_|^)(?:KEY|TOKEN|SECRET|PASSWORD)$/i.test(name) && value.length >= 8 ? [value] : [],
  )
}

/**
 * Opens the files that `inspector` has written, or one exported thread, in a runtime that is never started: the threads
 * can be read, and nothing runs. `refresh` reads new files, and returns a text for each file that could not be read.
 */
export async function openInspected(path: string = FOLDER): Promise<{
  readonly runtime: EmbeddedRuntime
  refresh(): Promise<readonly string[]>
}> {
  const { createRegistry, createRuntime, defineAgent, definePrompt } =
    await import('@skein/runtime')
  const { scripted } = await import('@skein/ai/testing')
  const threadIds = new Set<string>()
  const agents = new Map<string, ReturnType<typeof defineAgent>>()
  const placeholder = (name: string): ReturnType<typeof defineAgent> => {
    const prompt = definePrompt({ name, prompt: '', model: scripted([]) })
    return defineAgent({
      name,
      description: 'Recorded elsewhere; it cannot be run here.',
      sideA: { prompt },
    })
  }
  const runtime = await createRuntime({ agents: [] })
  const read = async (file: string): Promise<void> => {
    const lines = await readFile(file, 'utf8')
    const { agent } = (tryParseJson(lines.slice(0, lines.indexOf('\n'))) ?? {}) as {
      readonly agent?: unknown
    }
    if (typeof agent === 'string' && !agents.has(agent)) {
      agents.set(agent, placeholder(agent))
      runtime.replaceRegistry(createRegistry({ agents: [...agents.values()] }))
    }
    await runtime.threads.import(lines)
  }
  return {
    runtime,
    async refresh() {
      const problems: string[] = []
      for (const file of await filesIn(path)) {
        if (threadIds.has(file)) continue
        threadIds.add(file)
        await read(file).catch((error: unknown) => problems.push(`${file}: ${messageOf(error)}`))
      }
      return problems
    },
  }
}

/** Returns the files to show, the oldest first: file names begin with the time. A missing folder counts as empty. */
async function filesIn(path: string): Promise<readonly string[]> {
  const stats = await stat(path).catch(() => undefined)
  if (!stats?.isDirectory()) return stats ? [path] : []
  return (await readdir(path))
    .filter(isThreadFile)
    .toSorted()
    .map((name) => join(path, name))
}
