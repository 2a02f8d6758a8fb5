import type { Relation, ResolvedAgent, ResolvedSide } from '../definitions/resolved.ts'
import type { VariableDefinition } from '../definitions/prompt-definition.ts'
import type { KernelEnvironment } from '../context/environment.ts'
import { RuntimeError } from '../contract/error.ts'
import { type EnvEntry, type KernelState, registryOf } from '../state/kernel-state.ts'
import type { Side, ThreadState } from '../contract/thread-state.ts'
import { envContext, type Vault } from '../secrets/vault.ts'
import type { EnvSet } from '../contract/event.ts'
import type { FacadeBuffer } from './facade-buffer.ts'

/** The variables as one side of the conversation, or one of its tools, sees them. */
export interface EnvReader {
  get(name: string): string | undefined
  /** Returns the type of a variable; undefined if the variable has no value. */
  typeOf(name: string): 'text' | 'secret' | undefined
  /** Whether a variable of this name is a secret, even if it has no value. */
  isSecret(name: string): boolean
  /** Returns the value of a variable; throws `ENV_MISSING` when it has none. */
  require(name: string): string
  /** Returns every secret value, including values that a value from another source overrides. */
  secrets(): string[]
  /** Returns a reader in which `pending` values override the committed ones; null removes a variable. */
  over(pending: ReadonlyMap<string, EnvEntry | null>): EnvReader
}

/** The sources of variables. */
export interface EnvReaderOptions {
  readonly kernel: Pick<KernelState, 'env'>
  readonly agent: ResolvedAgent
  readonly side: Side
  readonly instanceEnv: Values
  /** The variables that the prompt sets for the tool. */
  readonly toolEnv?: Values
  /** The variables that the tool itself declares; only for a tool that no prompt lists. */
  readonly variables?: readonly VariableDefinition[]
  readonly vault: Vault
  readonly threadId: string
}

type Values = Readonly<Record<string, string>>

/**
 * Creates a reader of variables with five sources. An earlier source overrides a later one: the
 * settings of the tool, the thread, this installation, the agent, its prompt.
 */
export function createEnvReader(options: EnvReaderOptions): EnvReader {
  return readerOver(options, new Map())
}

/** Whether a value switches an optional subagent on: `true`, `1` or `yes`, in upper or lower case. */
export function isEnabled(value: string | undefined): boolean {
  return value !== undefined && ['true', '1', 'yes'].includes(value.toLowerCase())
}

/** Throws when a variable switches this kind of child off, also if a call of the same message has just done so. */
export function refuseDisabled({ optional, key }: Relation, env: EnvReader): void {
  if (optional !== undefined && !isEnabled(env.get(optional)))
    throw new Error(`"${key}" is switched off by ${optional}.`)
}

/** Returns the name; throws `ENV_INVALID` if it cannot be the name of a variable. */
export function checkEnvName(name: string): string {
  if (typeof name === 'string' && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && name.length <= 256)
    return name
  throw new RuntimeError(`${JSON.stringify(name)} cannot be the name of a variable.`, {
    code: 'ENV_INVALID',
    hint: 'Letters, digits and underscores, not beginning with a digit.',
  })
}

function readerOver(
  options: EnvReaderOptions,
  pending: ReadonlyMap<string, EnvEntry | null>,
): EnvReader {
  const { kernel, agent, side, instanceEnv, toolEnv = {}, vault, threadId } = options
  const secretNames = declaredSecrets(options)
  const plainTexts = new Map<string, string>()

  function entryOf(name: string): EnvEntry | undefined {
    const entry = pending.get(name)
    return entry === undefined ? kernel.env.get(name) : (entry ?? undefined)
  }

  function open(name: string, entry: EnvEntry): string {
    if (entry.type === 'text') return entry.value
    const plainText = plainTexts.get(entry.value)
    if (plainText !== undefined) return plainText
    const value = vault.open(entry.value, envContext(threadId, name))
    plainTexts.set(entry.value, value)
    return value
  }

  function get(name: string): string | undefined {
    const setting = own(toolEnv, name)
    if (setting !== undefined) return setting
    const entry = entryOf(name)
    if (entry) return open(name, entry)
    return own(instanceEnv, name) ?? own(agent.definition.env, name) ?? promptValue(name)
  }

  function promptValue(name: string): string | undefined {
    return own((side === 'a' ? agent.a : agent.b)?.prompt.definition.env, name)
  }

  const isSecret = (name: string) => secretNames.has(name) || entryOf(name)?.type === 'secret'

  function secrets(): string[] {
    const names = new Set([...secretNames, ...kernel.env.keys(), ...pending.keys()])
    const sources = [toolEnv, instanceEnv, ...valuesOf(agent)]
    const secrets = new Set<string>()
    for (const name of names) {
      if (!isSecret(name)) continue
      for (const source of sources) secrets.add(own(source, name) ?? '')
      for (const entry of [kernel.env.get(name), pending.get(name)]) {
        try {
          if (entry) secrets.add(open(name, entry))
        } catch {
          // A value that cannot be decrypted cannot leak, so it need not be removed from texts.
        }
      }
    }
    secrets.delete('')
    return [...secrets]
  }

  return {
    get,
    isSecret,
    typeOf: (name) =>
      get(name) === undefined ? undefined : isSecret(name) ? 'secret' : ('text' as const),
    require(name) {
      const value = get(name)
      if (value !== undefined) return value
      throw new RuntimeError(`The variable "${name}" has no value in thread ${threadId}.`, {
        code: 'ENV_MISSING',
        hint: `Set "${name}" for the thread, or give it a default in the agent's env.`,
      })
    },
    secrets,
    over: (more) => readerOver(options, more),
  }
}

/**
 * Returns every secret value of a thread. If its agent is no longer defined, only the thread's own secret
 * variables are returned.
 */
export function threadSecrets(
  { registry, instanceEnv, vault }: Pick<KernelEnvironment, 'registry' | 'instanceEnv' | 'vault'>,
  state: Pick<KernelState, 'agent' | 'env' | 'threadId'> & Partial<Pick<KernelState, 'session'>>,
): string[] {
  const { env, threadId } = state
  const agent = registryOf(registry, state).agents.get(state.agent)
  const options = { kernel: { env }, side: 'a', instanceEnv, vault, threadId } as const
  if (agent) return createEnvReader({ ...options, agent }).secrets()
  return [...env].flatMap(([variable, { type, value }]) =>
    type === 'secret' ? [vault.open(value, envContext(threadId, variable))] : [],
  )
}

function own(values: Values | undefined, name: string): string | undefined {
  return values && Object.hasOwn(values, name) ? values[name] : undefined
}

/** Returns the names that a side of the conversation declares as secret; neither side may show their values. */
function declaredSecrets({ agent, variables = [] }: EnvReaderOptions): Set<string> {
  const all = sidesOf(agent).flatMap(({ prompt }) => [
    ...prompt.variables,
    ...prompt.tools.flatMap((tool) => (tool.kind === 'tool' ? (tool.tool.variables ?? []) : [])),
  ])
  const secrets = [...all, ...variables].filter(({ type }) => type === 'secret')
  return new Set([...secrets.map(({ name }) => name), ...hiddenNames(agent)])
}

/** Returns the variables that the agent, its prompts and their tools set, one object per source. */
function valuesOf(agent: ResolvedAgent): (Values | undefined)[] {
  const sides = sidesOf(agent).flatMap(({ prompt }) => [
    prompt.definition.env,
    ...prompt.tools.map((tool) => (tool.kind === 'tool' ? tool.config?.env : undefined)),
  ])
  return [agent.definition.env, ...sides]
}

function sidesOf({ a, b }: ResolvedAgent): ResolvedSide[] {
  return b ? [a, b] : [a]
}

/**
 * Returns the variables that are reserved for particular children of an agent; its other children do not
 * inherit them.
 */
export function scopedNames(agent: ResolvedAgent): ReadonlySet<string> {
  const names = relationsOf(agent).flatMap(({ scopedEnv, requiredVariables }) => [
    ...scopedEnv,
    ...requiredVariables.map(({ name }) => name),
  ])
  return new Set(names)
}

/**
 * Returns the variables that no model may see: those reserved for particular children, except the variables
 * that hold a child's name and description for the model (Standard Agents §7.6).
 */
function hiddenNames(agent: ResolvedAgent): readonly string[] {
  const relations = relationsOf(agent)
  const textNames = new Set(relations.flatMap((one) => [one.nameEnv, one.descriptionEnv]))
  return relations.flatMap(({ scopedEnv }) => scopedEnv).filter((name) => !textNames.has(name))
}

function relationsOf(agent: ResolvedAgent): readonly Relation[] {
  const tools = sidesOf(agent).flatMap(({ prompt }) => prompt.tools)
  return tools.flatMap((tool) => (tool.kind === 'subagent' ? [tool.relation] : []))
}

const MAX_VALUE_BYTES = 64 * 1024

type EnvMembers = Pick<ThreadState, 'env' | 'hasEnv' | 'envType' | 'setEnv'>

interface FacadeEnv extends EnvMembers {
  /** Returns every secret value, including values set here that are not committed yet. */
  secrets(): string[]
  clear(): void
}

/**
 * Creates the methods with which user code reads and sets variables (`env`, `setEnv` …). Reads include
 * changes that are not committed yet.
 */
export function facadeEnv(
  { kernel, environment, events, at }: FacadeBuffer,
  env: EnvReader,
): FacadeEnv {
  const pending = new Map<string, EnvEntry | null>()
  const reader = env.over(pending)
  const secrets = new Set<string>()
  return {
    env: (name) => reader.require(name),
    hasEnv: (name) => reader.get(name) !== undefined,
    envType: (name) => reader.typeOf(name),
    setEnv(name, value, { type } = {}) {
      // A secret stays a secret, even if the caller sets it as text.
      const valueType = reader.isSecret(name) ? 'secret' : (type ?? 'text')
      // A value reserved for this child (scoped) stays reserved when the child changes it: the child's
      // own children do not inherit it.
      const isScoped = kernel.env.get(name)?.isScoped ?? false
      const { threadId } = kernel
      const { vault } = environment
      const event = envSet({ name, value, valueType, threadId, vault, at: at(), isScoped })
      events.push(event)
      if (value !== null && valueType === 'secret') secrets.add(value)
      const entry = event.value === null ? null : { type: valueType, value: event.value, isScoped }
      pending.set(name, entry)
    },
    secrets: () => [...new Set([...reader.secrets(), ...secrets])],
    clear: () => pending.clear(),
  }
}

/** Returns the event that sets a variable of a thread; null removes it. A secret is encrypted. */
export function envSet(options: {
  readonly name: string
  readonly value: string | null
  readonly valueType: 'text' | 'secret'
  readonly threadId: string
  readonly vault: Vault
  readonly at: string
  readonly isScoped?: boolean
}): EnvSet {
  const { name, value, valueType, threadId, vault, at, isScoped } = options
  checkEnvName(name)
  if (value !== null && (typeof value !== 'string' || Buffer.byteLength(value) > MAX_VALUE_BYTES))
    throw new RuntimeError(`The value of the variable "${name}" is not text, or too long.`, {
      code: 'ENV_INVALID',
      hint: `Values are texts of at most ${MAX_VALUE_BYTES} bytes.`,
    })
  const isSealed = value !== null && valueType === 'secret'
  return {
    type: 'env_set',
    at,
    name,
    valueType,
    value: isSealed ? vault.seal(value, envContext(threadId, name)) : value,
    isScoped: isScoped || undefined,
  }
}

/** Whether a variable is a secret. A secret stays a secret, even if it is set again as text. */
export function isSecret(
  { registry, vault, instanceEnv }: Pick<KernelEnvironment, 'registry' | 'vault' | 'instanceEnv'>,
  state: KernelState,
  name: string,
): boolean {
  const agent = registryOf(registry, state).agents.get(state.agent)
  if (!agent) return state.env.get(name)?.type === 'secret'
  const options = { kernel: state, agent, instanceEnv, vault, threadId: state.threadId } as const
  return createEnvReader({ ...options, side: 'a' }).isSecret(name)
}
