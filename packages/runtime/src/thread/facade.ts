import { deepFreeze, type JsonValue } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { KernelEnvironment } from '../context/environment.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { Blob } from '../store/commit.ts'
import type { ThreadHead } from '../store/head.ts'
import type { SubagentRegistryEntry, ThreadState } from '../contract/thread-state.ts'
import { type EnvReader, facadeEnv } from './env.ts'
import { facadeEffects } from './effects.ts'
import { facadeValues } from './values.ts'
import { type ValueUse } from './value-reads.ts'
import { type FacadeBuffer, jsonCopy } from './facade-buffer.ts'
import { facadeFiles } from './facade-files.ts'
import { facadeUser } from './user-values.ts'
import { facadeMessages } from './messages.ts'

const MAX_EMIT_BYTES = 256 * 1024
const MAX_STATUS_LENGTH = 1000

/** The options of `createThreadFacade`. */
export interface ThreadFacadeOptions {
  readonly kernel: KernelState
  readonly head: ThreadHead
  readonly environment: KernelEnvironment
  readonly env: EnvReader
  readonly signal: AbortSignal
  /** Commits events and shows them to readers immediately; used by `emit` and `setStatus`. */
  readonly immediate: (events: readonly RuntimeEvent[]) => Promise<void>
  /** Runs another tool for `invokeTool`. If it is missing, `invokeTool` always throws. */
  readonly invoke?: (name: string, args: JsonValue) => Promise<unknown>
  /** The names of the tools that `invokeTool` may run; if absent, it may run every tool. */
  readonly allowedTools?: readonly string[]
  /** The name of the tool whose code uses this state, for error messages. */
  readonly toolName?: string
  readonly turnId?: string
  readonly toolCallId?: string
}

/**
 * The changes that user code made through the facade, the state object that it was given. They are
 * committed together with the outcome of that code: a tool, a hook or an effect.
 */
export interface FacadeChanges {
  readonly events: readonly RuntimeEvent[]
  readonly blobs: readonly Blob[]
  readonly values: ValueUse
  readonly toParent: readonly { readonly text: string; readonly attachments: readonly string[] }[]
  readonly stopSession?: {
    readonly result: string
    readonly failed: boolean
    readonly attachments: readonly string[]
  }
  readonly terminates: boolean
}

/** The state object that user code of a thread is given, and the changes that the code made through it. */
export interface ThreadFacade {
  readonly state: ThreadState
  /** Returns the changes since the last call and empties the buffer. */
  takeChanges(): FacadeChanges
  /**
   * Returns every secret value, including values that the user's code has just set, so that they can be
   * removed from the result of that code.
   */
  secrets(): string[]
}

/**
 * Creates the state object of a thread for tools, hooks, effects and endpoints. Their writes are
 * buffered: their own reads see them, but the thread changes only when the changes are committed.
 */
export function createThreadFacade(options: ThreadFacadeOptions): ThreadFacade {
  const { kernel, environment, head, signal } = options
  const buffer: FacadeBuffer = {
    ...options,
    events: [],
    blobs: new Map(),
    at: () => new Date(environment.clock.now()).toISOString(),
  }
  const files = facadeFiles(buffer)
  const messages = facadeMessages(buffer, files)
  const values = facadeValues(buffer)
  const { user, take: takeUser } = facadeUser(buffer, head)
  const env = facadeEnv(buffer, options.env)
  const effects = facadeEffects(buffer)
  const session = facadeSession(kernel, files.existing)
  // `existing`, `clear`, `take` and `secrets` are internal, so they are left out of the object that users get.
  const { existing: _existing, clear: _files, ...fileMembers } = files
  const { clear: _messages, ...messageMembers } = messages
  const { take: takeValues, ...valueMembers } = values
  const { clear: _env, secrets, ...envMembers } = env
  const { clear: _effects, queueTool, ...effectMembers } = effects
  const state: ThreadState = {
    threadId: kernel.threadId,
    agentId: kernel.agent,
    userId: head.owner,
    tenant: head.tenant,
    createdAt: microseconds(kernel.createdAt),
    terminated: kernel.terminated ? microseconds(kernel.terminated.at) : null,
    children: deepFreeze(childRegistry(kernel)),
    arguments: deepFreeze(kernel.arguments),
    signal,
    ...messageMembers,
    ...envMembers,
    ...valueMembers,
    user,
    getUserValue: user.get,
    setUserValue: user.set,
    listUserValues: user.list,
    ...effectMembers,
    ...fileMembers,
    getFileStats: files.statFile,
    readdirFile: files.listFiles,
    unlinkFile: files.removeFile,
    renameFile: files.moveFile,
    ...session.members,
    ...liveMembers(options, buffer, queueTool),
  }
  return {
    state: Object.freeze(state),
    secrets,
    takeChanges() {
      const events = buffer.events.splice(0)
      const blobs = [...buffer.blobs.values()]
      buffer.blobs.clear()
      for (const part of [files, messages, env, effects]) part.clear()
      return { events, blobs, values: { ...takeValues(), user: takeUser() }, ...session.take() }
    },
  }
}

function microseconds(iso: string): number {
  return Date.parse(iso) * 1000
}

type SessionMembers = Pick<
  ThreadState,
  'getParentThread' | 'getChildThread' | 'notifyParent' | 'terminate' | 'stopSession'
>

/**
 * Creates the methods of a thread's state that send a message to its parent, or end the session or the
 * thread (`notifyParent`, `stopSession`, `terminate` …).
 */
function facadeSession(
  { parent, children }: Pick<KernelState, 'parent' | 'children'>,
  existing: (paths: readonly string[] | undefined) => readonly string[],
): {
  readonly members: SessionMembers
  take(): Pick<FacadeChanges, 'toParent' | 'stopSession' | 'terminates'>
} {
  let toParent: { text: string; attachments: readonly string[] }[] = []
  let stopSession: FacadeChanges['stopSession']
  let terminates = false
  return {
    members: {
      getParentThread: () => (parent ? { threadId: parent.threadId } : null),
      getChildThread(reference) {
        const child = childRegistry({ children }).find((one) => one.reference === reference)
        return child ? deepFreeze({ ...child, threadId: reference }) : null
      },
      notifyParent(content, attachments) {
        if (typeof content !== 'string') throw noText('notifyParent')
        const paths = existing(attachments)
        // The same agent may also run in a thread without a parent; the message is then ignored.
        if (parent) toParent.push({ text: content, attachments: paths })
      },
      terminate() {
        terminates = true
      },
      stopSession({ result = '', failed = false, attachments } = {}) {
        if (typeof result !== 'string') throw noText('stopSession')
        stopSession = { result, failed, attachments: existing(attachments) }
      },
    },
    take() {
      const changes = { toParent, stopSession, terminates }
      toParent = []
      stopSession = undefined
      terminates = false
      return changes
    },
  }
}

type LiveMembers = Pick<ThreadState, 'setStatus' | 'emit' | 'invokeTool' | 'queueTool'>

/**
 * Creates the methods of a thread's state that do not wait for the end of the user's code: `setStatus`,
 * `emit` and `invokeTool` act immediately, `queueTool` runs a tool later.
 */
function liveMembers(
  options: ThreadFacadeOptions,
  { at, turnId, environment }: FacadeBuffer,
  queue: (name: string, args: JsonValue) => string,
): LiveMembers {
  const { immediate, invoke, allowedTools, toolName } = options
  const notAllowed = (verb: string, name: string): RuntimeError => {
    const who = toolName === undefined ? 'Code' : `The tool "${toolName}"`
    const list = allowedTools?.join(', ')
    return new RuntimeError(`${who} may not ${verb} the tool "${name}" here.`, {
      code: 'TOOL_NOT_ALLOWED',
      hint: list ? `It may use: ${list}.` : 'List it in the tool’s `uses`.',
    })
  }
  return {
    queueTool(name, args) {
      if (toolName !== undefined && !allowedTools?.includes(name)) throw notAllowed('queue', name)
      if (!environment.registry.tools.get(name)?.run)
        throw new RuntimeError(`There is no tool "${name}" that runs here.`, {
          code: 'TOOL_NOT_ALLOWED',
          hint: 'Queue a tool that is registered and has an `execute`.',
        })
      return queue(name, args)
    },
    async setStatus(status) {
      if (typeof status !== 'string') throw noText('setStatus')
      const text = status.slice(0, MAX_STATUS_LENGTH)
      await immediate([{ type: 'status_changed', at: at(), status: 'running', text }])
    },
    async emit(name, data, { transient = false } = {}) {
      if (typeof name !== 'string' || name === '') throw noText('emit')
      const copy = jsonCopy(data, {
        subject: `The data of the event "${name}"`,
        code: 'INPUT_INVALID',
        maxBytes: MAX_EMIT_BYTES,
      })
      await immediate([
        {
          type: 'custom_event',
          at: at(),
          name,
          data: copy,
          turnId,
          isTransient: transient || undefined,
        },
      ])
    },
    async invokeTool(name, args) {
      if (!invoke || (allowedTools && !allowedTools.includes(name)))
        throw notAllowed('invoke', name)
      return invoke(name, args)
    },
  }
}

function noText(member: string): RuntimeError {
  return new RuntimeError(`${member} was called without a text.`, { code: 'INPUT_INVALID' })
}

/**
 * Returns the children that a thread can still send messages to (Standard Agents §7.11): resumable ones
 * always, others until they have ended. `status` is the text that the child published last, else its
 * lifecycle; the end of a session removes the text. A resumable child that has finished is shown as idle,
 * because it waits for its next message. `includesEnded` adds the children that take no more messages.
 */
export function childRegistry(
  { children }: Pick<KernelState, 'children'>,
  { includesEnded = false }: { readonly includesEnded?: boolean } = {},
): SubagentRegistryEntry[] {
  const entries = [...children.values()].filter(
    ({ created, lifecycle }) =>
      includesEnded ||
      created.isResumable ||
      lifecycle === 'running' ||
      lifecycle === 'idle' ||
      lifecycle === 'awaiting_human',
  )
  return entries.map(({ created, lifecycle, statusText }) => {
    const { reference, name, title, description = '', threadName, spawnGroupId } = created
    const state = lifecycle === 'completed' && created.isResumable ? 'idle' : lifecycle
    return {
      reference,
      name,
      title,
      description,
      resumable: created.isResumable ?? false,
      blocking: created.isBlocking ?? false,
      threadName,
      spawnGroupId,
      createdAt: microseconds(created.at),
      status: (lifecycle === 'running' || lifecycle === 'idle') && statusText ? statusText : state,
      parentCommunication: created.parentCommunication,
    }
  })
}
