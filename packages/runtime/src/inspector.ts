import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type LLMRequest,
  type Message,
  messageToJSON,
  type Middleware as LLMMiddleware,
  type Turn,
  UPPError,
} from '@skein/ai'
import type { Middleware as AgentMiddleware } from '@skein/agents'
import {
  encodeBase64,
  type JsonObject,
  messageOf,
  redactSecrets,
  tryParseJson,
  uuidV7,
} from '@skein/base'
import { EVENT_VERSION, type RuntimeEvent } from './contract/event.ts'
import { toThreadUsage } from './contract/usage.ts'
import { deltaOf, frameOf } from './model/log.ts'
import type { EmbeddedRuntime } from './runtime.ts'

/** The default folder for the files; `skein studio` reads it. */
const FOLDER = join('.skein', 'inspector')
/** The files of older calls are removed. */
const MAX_FILES = 500

/** Options of `inspector`. */
interface InspectorOptions {
  /** Default `.skein/inspector` of the current folder. */
  readonly folder?: string
  /** The name under which calls are listed. Default: `llm`, or the id of the agent. */
  readonly name?: string
  /** Texts that must not be written. The keys of a call and of the environment are removed anyway. */
  readonly secrets?: readonly string[]
  /** Called when a call could not be written; the call itself goes on. Default: a warning of the process. */
  readonly onError?: (error: unknown) => void
}

/**
 * Creates a middleware for `llm()` and for `agent()` that writes each call or run as a file, which `skein studio`
 * shows as a thread: messages, requests as they were sent, tools, usage, times and failures.
 *
 *     const answer = await llm({ model, middleware: [inspector()] }).generate('Hello')
 */
export function inspector(options: InspectorOptions = {}): LLMMiddleware & AgentMiddleware {
  const { folder = FOLDER, name } = options
  const onError = options.onError ?? ((error) => process.emitWarning(messageOf(error)))
  const runs = new Map<string, Recording>()
  const write = async (recording: Recording | undefined, end: End): Promise<undefined> => {
    try {
      if (recording) await writeThread(folder, recording, { end, secrets: options.secrets ?? [] })
    } catch (error) {
      onError(error)
    }
  }
  return {
    name: 'inspector',
    onStart({ state, modality }) {
      if (modality === 'llm') state.set(KEY, new Recording(name ?? 'llm'))
    },
    onCycle(request, _, { state, provider, modelId: model }) {
      recordingIn(state)?.ask({ ...request, provider, model })
    },
    onTurn: (turn, { state }) => write(recordingIn(state), { turn }),
    before({ input, agent }) {
      runs.set(input.id, new Recording(name ?? agent.id, agent.system))
    },
    onInference({ messages, tools, params, model }) {
      const run = messages.map(({ id }) => runs.get(id)).findLast(Boolean)
      const { provider, modelId } = model
      run?.ask({ messages, tools, params, provider: provider.name, model: modelId })
    },
    async after({ input }, { turn }) {
      const run = runs.get(input.id)
      runs.delete(input.id)
      await write(run, { turn })
    },
    // `llm()` passes the error first and `agent()` last.
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

function recordingIn(state: ReadonlyMap<string, unknown>): Recording | undefined {
  const known = state.get(KEY)
  return known instanceof Recording ? known : undefined
}

type End = { readonly turn: Turn } | { readonly error: unknown }

/** One request to a model. */
interface Inference extends Pick<LLMRequest, 'messages' | 'tools' | 'params'> {
  readonly at: number
  readonly provider: string
  readonly model: string
  readonly system?: string
  readonly structure?: LLMRequest['structure']
  readonly config?: LLMRequest['config']
}

/** What is known of one call or run until it ends. */
class Recording {
  readonly agent: string
  readonly startedAt: number = Date.now()
  readonly inferences: Inference[] = []
  readonly #system: string | undefined

  constructor(name: string, system?: string) {
    // The page uses the name of an agent in links, so other characters are replaced.
    this.agent = name.replaceAll(/[^\w-]+/g, '_').slice(0, 64) || 'llm'
    this.#system = system
  }

  ask(inference: Omit<Inference, 'at'>): void {
    const system = inference.system ?? this.#system
    // A copy, because the caller may add to its list of messages.
    this.inferences.push({
      ...inference,
      system,
      messages: [...inference.messages],
      at: Date.now(),
    })
  }
}

/** Writes a recording as an exported thread. The file appears as a whole, so that readers never see a part of it. */
async function writeThread(
  folder: string,
  recording: Recording,
  { end, secrets }: { readonly end: End; readonly secrets: readonly string[] },
): Promise<void> {
  const id = uuidV7()
  const hidden = [...secrets, ...keysIn(recording), ...keysOfEnvironment()]
  const clean = <T>(value: T): T => JSON.parse(redactSecrets(JSON.stringify(value), hidden)) as T // JSON stays JSON
  const { events, blobs } = new ThreadWriter(id, recording, clean).write(end)
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
  const stored = events.map((event, index) => ({ seq: index + 1, event: clean(event) }))
  const contents = [...blobs].map(([blob, bytes]) => ({ blob, base64: encodeBase64(bytes) }))
  const lines = [header, ...stored, ...contents].map((line) => `${JSON.stringify(line)}\n`)
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

function keysIn({ inferences }: Recording): readonly string[] {
  return inferences.flatMap(({ config }) =>
    typeof config?.apiKey === 'string' ? [config.apiKey] : [],
  )
}

/** Returns the values of environment variables whose names look like those of secrets. */
function keysOfEnvironment(): readonly string[] {
  return Object.entries(process.env).flatMap(([name, value = '']) =>
    /(?:_|^)(?:KEY|TOKEN|SECRET|PASSWORD)$/i.test(name) && value.length >= 8 ? [value] : [],
  )
}

/** Writes the events of an ordinary thread, so that everything that shows threads shows the call. */
class ThreadWriter {
  readonly events: RuntimeEvent[] = []
  readonly blobs = new Map<string, Uint8Array>()
  readonly #id: string
  readonly #recording: Recording
  readonly #clean: <T>(value: T) => T
  readonly #turnId: string = uuidV7()
  readonly #stored = new Map<string, Message>()
  readonly #toolNames = new Map<string, string>()
  #previous: { logId: string; frame: string; messageIds: string[] } | undefined
  #stepId = ''

  constructor(id: string, recording: Recording, clean: <T>(value: T) => T) {
    this.#id = id
    this.#recording = recording
    this.#clean = clean
  }

  write(end: End): { events: readonly RuntimeEvent[]; blobs: ReadonlyMap<string, Uint8Array> } {
    const { agent, startedAt, inferences } = this.#recording
    const at = timeText(startedAt)
    const agentId = `${agent}/a`
    const threadId = this.#id
    const turnId = this.#turnId
    this.events.push(
      { type: 'thread_created', at, threadId, agent, version: EVENT_VERSION, depth: 0 },
      {
        type: 'agent_registered',
        at,
        agent: { agent_id: agentId, agent_name: agent, created_at: at },
      },
      { type: 'session_start', at, sessionId: threadId, agent },
    )
    const turn = 'turn' in end ? end.turn : undefined
    const first = inferences[0]?.messages ?? []
    const given = new Set(first.map(({ id }) => id))
    const produced = (turn?.messages ?? inferences.at(-1)?.messages ?? []).filter(
      ({ id }) => !given.has(id),
    )
    for (const message of first) this.#history(message)
    this.events.push({ type: 'turn_start', at, turnId, agentId, side: 'a' })
    let cycle = 0
    for (const message of produced)
      if (message.type === 'assistant') this.#answered(message, cycle++, turn)
      else this.#history(message, turn)
    if (this.#stepId !== '')
      this.events.push({ type: 'step_end', at: this.#last(), turnId, stepId: this.#stepId })
    this.#end(end, inferences[cycle])
    return this
  }

  /** A message that the model was given, or the results of its calls. */
  #history(message: Message, turn?: Turn): void {
    const at = timeText(message.timestamp)
    const turnId = this.#turnId
    if (message.type === 'tool_result') {
      for (const { toolCallId, result, isError = false } of message.results) {
        const toolName = this.#toolNames.get(toolCallId) ?? 'tool'
        const durationMs = turn?.toolExecutions.find(
          (one) => one.toolCallId === toolCallId,
        )?.duration
        const outcome = isError ? 'failed' : 'success'
        this.events.push({
          type: 'tool_execution_end',
          at,
          turnId,
          toolCallId,
          toolName,
          outcome,
          result,
          ...(durationMs !== undefined && { durationMs }),
        })
      }
      return
    }
    this.#stored.set(message.id, message)
    const side = message.type === 'user' ? 'b' : 'a'
    const agentId = message.type === 'user' ? {} : { agentId: `${this.#recording.agent}/a` }
    const added = { message: messageToJSON(message), side, ...agentId } as const
    this.events.push({ type: 'message_added', at, turnId: message.id, ...added })
    if (message.type === 'assistant') this.#called(message)
  }

  #called(message: Extract<Message, { type: 'assistant' }>): void {
    const at = timeText(message.timestamp)
    for (const { toolCallId, toolName, arguments: args } of message.toolCalls ?? []) {
      this.#toolNames.set(toolCallId, toolName)
      const call = { toolCallId, toolName, arguments: args, epoch: 1 }
      this.events.push({ type: 'tool_execution_start', at, turnId: this.#turnId, ...call })
    }
  }

  /** A message of the model in this call: the request, its answer and what it used. */
  #answered(message: Extract<Message, { type: 'assistant' }>, cycle: number, turn?: Turn): void {
    const { agent, inferences } = this.#recording
    const turnId = this.#turnId
    const at = timeText(message.timestamp)
    const asked = inferences[cycle]
    const logId = this.#step(asked, at)
    const used = turn?.usageByCycle[cycle]
    const usage = used && toThreadUsage(used)
    const cost = used?.costUsd === undefined ? {} : { costUsd: used.costUsd }
    const isLast = message.id === turn?.response.id
    const finish = isLast ? { finishReason: turn.stopReason } : {}
    if (logId !== undefined && asked)
      this.events.push({
        type: 'model_answered',
        at,
        logId,
        durationMs: Math.max(0, message.timestamp.getTime() - asked.at),
        messageId: message.id,
        ...(usage && { usage: { ...usage } as JsonObject }),
        ...cost,
        ...finish,
      })
    this.#stored.set(message.id, message)
    this.events.push({
      type: 'message_added',
      at,
      turnId,
      stepId: this.#stepId,
      side: 'a',
      agentId: `${agent}/a`,
      message: messageToJSON(message),
      ...(asked && { modelName: asked.model, providerName: asked.provider }),
      ...(usage && { usage }),
      ...cost,
      ...finish,
    })
    this.#called(message)
  }

  /** Begins the step of an inference with the request as it was sent; returns the id of the request. */
  #step(asked: Inference | undefined, answeredAt: string): string | undefined {
    const turnId = this.#turnId
    const at = asked ? timeText(asked.at) : answeredAt
    if (this.#stepId !== '')
      this.events.push({ type: 'step_end', at: this.#last(), turnId, stepId: this.#stepId })
    const stepId = (this.#stepId = uuidV7())
    this.events.push({
      type: 'step_start',
      at,
      turnId,
      stepId,
      side: 'a',
      attempt: 1,
      epoch: 1,
    })
    if (!asked) return undefined
    const { system = null, params, structure, messages, provider, model } = asked
    const tools = asked.tools.map(({ name, description, parameters }) => ({
      name,
      description,
      parameters,
    }))
    const frame = frameOf(
      this.#clean({
        system,
        tools,
        params: params as JsonObject,
        ...(structure && { structure: structure as JsonObject }),
      }),
    )
    this.blobs.set(frame.hash, frame.bytes)
    const logId = uuidV7()
    const delta = deltaOf(this.#previous, messages, (id) => this.#stored.get(id))
    const kept = this.#previous?.messageIds.slice(0, delta.previous?.keeps ?? 0) ?? []
    const added = delta.adds.map((add) => (typeof add === 'string' ? add : String(add['id'])))
    this.#previous = { logId, frame: frame.hash, messageIds: [...kept, ...added] }
    this.events.push({
      type: 'model_requested',
      at,
      logId,
      stepId,
      turnId,
      attempt: 1,
      side: 'a',
      prompt: this.#recording.agent,
      provider,
      model,
      frame: frame.hash,
      ...delta,
    })
    return logId
  }

  #end(end: End, unanswered: Inference | undefined): void {
    const turnId = this.#turnId
    const sessionId = this.#id
    const at = timeText(Date.now())
    if ('turn' in end) {
      const { text } = end.turn.response
      this.events.push(
        { type: 'turn_end', at, turnId, outcome: 'completed', reason: 'response' },
        {
          type: 'session_end',
          at,
          sessionId,
          outcome: 'completed',
          reason: 'response',
          message: text,
        },
        { type: 'status_changed', at, status: 'idle' },
      )
      return
    }
    const { error } = end
    const code = error instanceof UPPError ? error.code : 'ERROR'
    const message = messageOf(error)
    const logId = unanswered && this.#step(unanswered, at)
    if (logId !== undefined && unanswered)
      this.events.push({
        type: 'model_answered',
        at,
        logId,
        durationMs: Math.max(0, Date.now() - unanswered.at),
        error: { code, message },
      })
    this.events.push(
      { type: 'error_raised', at, code, message, turnId },
      { type: 'turn_end', at, turnId, outcome: 'failed', reason: code },
      { type: 'session_end', at, sessionId, outcome: 'failed', reason: code, message },
      { type: 'status_changed', at, status: 'failed' },
    )
  }

  #last(): string {
    return this.events.at(-1)?.at ?? timeText(this.#recording.startedAt)
  }
}

function timeText(time: number | Date): string {
  return new Date(time).toISOString()
}

/**
 * Opens what `inspector` has written, or one file of an exported thread, as a runtime that only shows: it is never
 * started, so nothing in it runs. `refresh` reads the files that are new, and returns why some could not be read.
 */
export async function openInspected(path: string = FOLDER): Promise<{
  readonly runtime: EmbeddedRuntime
  refresh(): Promise<readonly string[]>
}> {
  const { createRuntime } = await import('./runtime.ts')
  const { createRegistry } = await import('./definitions/load/registry.ts')
  const { defineAgent, definePrompt } = await import('./definitions/define.ts')
  const { scripted } = await import('@skein/ai/testing')
  const known = new Set<string>()
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
        if (known.has(file)) continue
        known.add(file)
        await read(file).catch((error: unknown) => problems.push(`${file}: ${messageOf(error)}`))
      }
      return problems
    },
  }
}

/** The files to show, the oldest first: their names begin with the time. A folder that is not there yet has none. */
async function filesIn(path: string): Promise<readonly string[]> {
  const found = await stat(path).catch(() => undefined)
  if (!found?.isDirectory()) return found ? [path] : []
  return (await readdir(path))
    .filter(isThreadFile)
    .toSorted()
    .map((name) => join(path, name))
}
