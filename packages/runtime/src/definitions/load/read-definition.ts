import { argumentParserMember, argumentParserOf, isPlainObject, type JsonSchema } from '@skein/base'
import type { ModelReference, Params, ProviderConfig } from '@skein/ai'
import { type Risk, RISKS } from '@skein/governance'
import { asToolDefinition } from '../define-tool.ts'
import type { HookName, HookSignatures } from '../hooks.ts'
import type { EffectDefinition } from '../effect-definition.ts'
import type { EndpointDefinition } from '../endpoint-definition.ts'
import type { HookDefinition } from '../hook-definition.ts'
import type { ModelDefinition } from '../model-definition.ts'
import type { Ref } from '../agent-definition.ts'
import type { ToolDefinition, ToolGovernance } from '../tool-definition.ts'
import type { VariableDefinition } from '../prompt-definition.ts'
import {
  amount,
  at,
  callback,
  count,
  type Fields,
  flag,
  kindOf,
  readList,
  oneOf,
  type Place,
  plainObject,
  type Reader,
  readFields,
  report,
  text,
  word,
} from './readers.ts'

/** The kinds of definitions that have a `kind` field; an agent is recognised by `sideA` and `sideB` instead. */
export type Kind = 'prompt' | 'model' | 'tool' | 'hook' | 'effect' | 'endpoint'

/** Reads a reference: the name of a definition, or a definition made with its `define` function. */
export function reference<T extends object>(kind: Kind): Reader<Ref<T>> {
  const maker = `define${kind[0]?.toUpperCase()}${kind.slice(1)}()`
  return (value, place) => {
    if (typeof value === 'string') return word(value, place)
    // The fields of the definition are checked later, when all definitions are collected.
    const definition = kind === 'tool' ? asToolDefinition(value) : isKind(value, kind) && value
    if (definition) return definition as unknown as T
    return report(place, `must be a ${kind}’s name or made with ${maker}, not ${kindOf(value)}`)
  }
}

/** Whether the value was made by the `define` function of this kind. */
export function isKind(value: unknown, kind: Kind): value is Record<string, unknown> {
  return isPlainObject(value) && value['kind'] === kind
}

/**
 * Reads `Params` or a `ProviderConfig` of `@skein/ai`. Their fields depend on the vendor and are not checked.
 */
export const settings: Reader<Params & ProviderConfig> = (value, place) =>
  plainObject(value, place) as (Params & ProviderConfig) | undefined

/** Reads a model of a vendor, e.g. `anthropic('…')`. */
export const modelReference: Reader<ModelReference> = (value, place) =>
  isModelReference(value)
    ? value
    : report(place, `must be a model such as anthropic('…'), not ${kindOf(value)}`)

/** Whether the value is a model of a vendor. */
export function isModelReference(value: unknown): value is ModelReference {
  if (typeof value !== 'object' || value === null) return false
  const { modelId, provider } = value as { modelId?: unknown; provider?: unknown }
  return typeof modelId === 'string' && typeof provider === 'function' && 'handlers' in provider
}

/** Reads a model definition, its name, or a model of a vendor. */
export const modelOrReference: Reader<Ref<ModelDefinition> | ModelReference> = (value, place) =>
  isModelReference(value) ? value : reference<ModelDefinition>('model')(value, place)

/** Reads the declaration of a variable. */
export const variable: Reader<VariableDefinition> = readFields<VariableDefinition>(
  {
    name: word,
    type: oneOf('text', 'secret'),
    required: flag,
    scoped: flag,
    description: text,
  },
  ['name'],
)

/** The tool that undoes a call; whether it exists is known when all definitions are read. */
const undoneBy = readFields<{ readonly tool?: string; readonly args?: unknown }>(
  { tool: word, args: callback() },
  ['tool'],
)

const governance: Fields<ToolGovernance> = {
  risk: oneOf<Risk>(...RISKS),
  raise: callback(),
  rollback: (value, place) => {
    if (value === 'impossible' || typeof value === 'function')
      return value as ToolGovernance['rollback']
    if (isPlainObject(value)) return undoneBy(value, place) as ToolGovernance['rollback']
    return report(place, `must be a function, { tool } or 'impossible', not ${kindOf(value)}`)
  },
  probe: callback(),
  idempotent: flag,
  timeoutMs: count,
  evidence: callback(),
}

/** Keeps the parse phase of a definition, which is no field that can be written in a file. */
function withParser<T extends object>(read: Reader<T>): Reader<T> {
  return (value, place) => {
    const fields = read(value, place)
    const parser = isPlainObject(value) ? argumentParserOf(value) : undefined
    return fields && { ...fields, ...argumentParserMember(parser) }
  }
}

/** The valid fields of a tool. */
export interface ReadTool extends Partial<Omit<ToolDefinition, 'variables' | 'uses'>> {
  readonly variables?: readonly (VariableDefinition | undefined)[]
  readonly uses?: readonly (Ref<ToolDefinition> | undefined)[]
}

const toolFields: Fields<ReadTool> = {
  kind: oneOf('tool'),
  name: word,
  description: text,
  risk: (value) => value as Risk, // the risk is checked in `governance`
  idempotent: flag,
  parameters: plainObject as Reader<JsonSchema>,
  run: callback(),
  // `defineTool` takes these fields in addition to the others.
  governance: (value, place) => readGovernance(value, { ...place, field: '' }),
  variables: readList(variable),
  uses: readList(reference<ToolDefinition>('tool')),
  timeoutMs: count,
}

const readGovernance = readFields(governance, ['risk'])

const readToolFields: Reader<ReadTool> = withParser(
  readFields(toolFields, ['kind', 'name', 'description', 'parameters', 'governance'], {
    alsoKnown: ['args', 'execute', 'rollback', 'probe', 'raise', 'evidence'],
    renamed: {
      inputSchema: 'write args',
      schema: 'write args',
      handler: 'write execute',
      needsApproval: "write risk: 'write_high_risk'",
      approval: "write risk: 'write_high_risk'; a policy decides about calls",
    },
  }),
)

/**
 * Reads a tool. Reports a high-risk tool that does not say how a call is undone, because the governor would refuse
 * every call of it.
 */
export const readTool: Reader<ReadTool> = (value, place) => {
  const { governance: declared } = isPlainObject(value) ? value : {}
  const tool = readToolFields(value, place)
  const isUndeclared = isPlainObject(declared) && declared['rollback'] === undefined
  if (tool?.run && tool.governance?.risk === 'write_high_risk' && isUndeclared)
    report(
      at(place, 'rollback'),
      "is required for write_high_risk: { tool, args }, a function that returns how to undo a call, or 'impossible'; a tool of tool() gets it from toolFrom(tool, { risk, rollback })",
    )
  return tool
}

/** The valid fields of a model. */
export interface ReadModel extends Partial<Omit<ModelDefinition, 'fallbacks'>> {
  readonly fallbacks?: readonly (Ref<ModelDefinition> | ModelReference | undefined)[]
}

const modelFields: Fields<ReadModel> = {
  kind: oneOf('model'),
  name: word,
  model: modelReference,
  config: settings,
  fallbacks: readList(modelOrReference),
  inputPrice: amount,
  outputPrice: amount,
  cachedPrice: amount,
  capabilities: readFields<NonNullable<ModelDefinition['capabilities']>>({
    maxContextTokens: count,
    maxOutputTokens: count,
    supportsImages: flag,
    supportsAudio: flag,
  }),
  providerOptions: settings,
}

/** Reads a model. */
export const readModel: Reader<ReadModel> = readFields(modelFields, ['kind', 'name', 'model'])

/** The names of all hooks; the type ensures that none is missing. */
const hookNames: { readonly [Name in keyof HookSignatures]: true } = {
  after_thread_created: true,
  after_subagent_created: true,
  after_system_message: true,
  filter_messages: true,
  prefilter_llm_history: true,
  before_create_message: true,
  after_create_message: true,
  before_update_message: true,
  after_update_message: true,
  before_store_tool_result: true,
  after_tool_call_success: true,
  after_tool_call_failure: true,
  tool_call_started: true,
  tool_call_done: true,
}

/** The valid fields of a hook. */
export type ReadHook = Partial<HookDefinition>

const hookFields: Fields<ReadHook> = {
  kind: oneOf('hook'),
  id: word,
  hook: oneOf<HookName>(...(Object.keys(hookNames) as HookName[])),
  execute: callback(),
  timeoutMs: count,
}

/** Reads a hook. */
export const readHook: Reader<ReadHook> = readFields(hookFields, ['kind', 'id', 'hook', 'execute'])

/** The valid fields of an effect. */
export type ReadEffect = Partial<EffectDefinition>

const effectFields: Fields<ReadEffect> = {
  kind: oneOf('effect'),
  name: word,
  description: text,
  run: callback(),
  risk: oneOf<Risk>(...RISKS),
  idempotent: flag,
  probe: callback(),
  retry: readFields<NonNullable<EffectDefinition['retry']>>(
    { attempts: count, backoffMs: amount },
    ['attempts', 'backoffMs'],
  ),
  timeoutMs: count,
}

/** Reads an effect. */
export const readEffect: Reader<ReadEffect> = withParser(
  readFields(effectFields, ['kind', 'name', 'run']),
)

/** The valid fields of an endpoint. */
export type ReadEndpoint = Partial<EndpointDefinition>

const endpointFields: Fields<ReadEndpoint> = {
  kind: oneOf('endpoint'),
  path: (value: unknown, place: Place) => {
    const path = text(value, place)
    if (path === undefined || !/^\/|\/$|\/\//.test(path)) return path
    return report(place, 'must not begin or end with a slash, nor hold an empty segment')
  },
  method: oneOf('GET', 'POST', 'PUT', 'PATCH', 'DELETE'),
  isRepeatable: flag,
  execute: callback(),
}

/** Reads an endpoint. */
export const readEndpoint: Reader<ReadEndpoint> = readFields(endpointFields, [
  'kind',
  'path',
  'method',
  'execute',
])
