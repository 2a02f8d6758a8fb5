import { defer, type Tool, ToolArgumentError, type ToolContext, withToolContext } from '@skein/ai'
import { isPlainObject, type JsonObject, type JsonSchema, toJsonSchema } from '@skein/base'
import { checksAnswers, type Relation, type ResolvedSide } from '../definitions/resolved.ts'
import type { PromptDefinition, SubagentToolConfig } from '../definitions/prompt-definition.ts'
import type { DrainContext } from '../context/drain-context.ts'
import { messageToChild, planSpawn, type SpawnPlan, refuseBeyondLimits } from './spawn.ts'
import { missingVariables, variablesError } from './missing-variables.ts'
import { hasUnnotedChildren, listTool, MOST_NOTED } from './child-list.ts'
import { refuseDisabled } from '../thread/env.ts'
import { findFiles, copyFiles } from '../thread/copied-files.ts'

/** A call that creates or messages a child. `plan`, the changes of both threads, is committed with its outcome. */
export interface SpawningCall {
  readonly drain: DrainContext
  readonly side: ResolvedSide
  plan: SpawnPlan | undefined
}

/** Returns the tools by which a side of the conversation creates and messages its children (Standard Agents §7.7). */
export function childTools(context: DrainContext, relations: readonly Relation[]): readonly Tool[] {
  const direct = relations.filter(({ isResumable }) => !isResumable)
  const resumable = relations.filter(({ isResumable }) => isResumable)
  const tools = direct.map((relation) =>
    childTool({
      name: relation.key,
      description: relation.description,
      parameters: argumentsOf(promptOf(context, relation), relation.config),
      run: (args, { running, toolCallId }) => create(running, { relation, args, toolCallId }),
    }),
  )
  if (resumable.length > 0) tools.push(createTool(resumable), messageTool(resumable))
  if (relations.length > 0 && hasUnnotedChildren(context.state))
    tools.push(listTool(() => context.state))
  return tools
}

/** `running` is the call that runs the tool; `calls/running-call.ts` puts it into the context. */
type ChildToolContext = ToolContext & { readonly running: SpawningCall }

function childTool(tool: {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly run: (args: JsonObject, context: ChildToolContext) => unknown
}): Tool {
  return withToolContext(tool as Tool) // `Tool` declares the parameters of `run` as `never`
}

/** The data that a call passes to the child. */
export interface Payload {
  /** The first message; if undefined, the arguments as JSON are sent. */
  readonly message: string | undefined
  readonly name: string | undefined
  readonly attachments: readonly string[]
  readonly arguments: JsonObject
}

/**
 * Reads the payload from the arguments of a call: when the call is made, or later, when a person has provided
 * the variables that were missing then.
 */
export async function payloadOf(
  context: DrainContext,
  relation: Relation,
  args: JsonObject,
): Promise<Payload> {
  if (relation.isResumable) return createdPayload(context, relation, args)
  const { initUserMessageProperty: from, initAgentNameProperty: named } = relation.config
  const valid = await checked(promptOf(context, relation), relation.key, args)
  return {
    message: messageIn(valid, from, relation.key),
    name: named === undefined ? undefined : asText(valid[named]),
    attachments: attachmentsOf(relation, valid),
    arguments: valid,
  }
}

/**
 * Returns the text of the message in the arguments of a call; undefined if the arguments themselves are the
 * message. `from` is the property that holds the text, `key` the name of the tool.
 */
export function messageIn(
  args: JsonObject,
  from: string | undefined,
  key: string,
): string | undefined {
  // If the arguments contain nothing but a message, its text is sent as it is, not as JSON.
  const isPlain = Object.keys(args).length === 1 && typeof args['message'] === 'string'
  const plain = isPlain ? args['message'] : undefined
  const message = asText(from === undefined ? plain : args[from])
  // A child without a first message would never begin, and its parent might wait for it for ever.
  if (from !== undefined && (message === undefined || message.trim() === ''))
    throw new Error(`"${key}" needs "${from}", which says what it is to do.`)
  return message
}

function promptOf({ environment }: DrainContext, { agent }: Relation): PromptDefinition {
  return environment.registry.agent(agent).a.prompt.definition
}

/** Validates the arguments with the schema that the prompt declares. */
export async function checked(
  { requiredSchema }: PromptDefinition,
  key: string,
  args: JsonObject,
): Promise<JsonObject> {
  if (!requiredSchema) return args
  const answer = await requiredSchema['~standard'].validate(args)
  if (answer.issues) throw new ToolArgumentError(key, answer.issues)
  // The validated value is treated as JSON, because it was made from JSON arguments.
  return isPlainObject(answer.value) ? (answer.value as JsonObject) : args
}

const FILES: JsonSchema = {
  type: 'array',
  items: { type: 'string' },
  description: 'Paths of files to hand over.',
}

/** Returns the JSON Schema of the prompt; if it declares none, a schema with a property for the message. */
export function argumentsOf(
  { requiredSchema }: PromptDefinition,
  config: Pick<
    SubagentToolConfig,
    'initUserMessageProperty' | 'initAttachmentsProperty' | 'initAgentNameProperty'
  >,
): JsonSchema {
  if (requiredSchema) return toJsonSchema(requiredSchema)
  const property = config.initUserMessageProperty ?? 'message'
  const properties: Record<string, JsonSchema> = {
    [property]: { type: 'string', description: 'What is to be done.' },
  }
  const { initAttachmentsProperty: files, initAgentNameProperty: named } = config
  if (files !== undefined) properties[files] = FILES
  if (named !== undefined)
    properties[named] = { type: 'string', description: 'A name for this instance.' }
  return { type: 'object', properties, required: [property] }
}

function asText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Returns the text of a message; undefined if it is blank, because vendors refuse messages without words. */
const wordsIn = (value: unknown): string | undefined =>
  asText(value)?.trim() ? asText(value) : undefined

/** Returns the paths in the argument that the child's configuration names for attachments: one path or a list. */
function attachmentsOf({ config }: Relation, args: JsonObject): readonly string[] {
  const from = config.initAttachmentsProperty
  return from === undefined ? [] : pathsOf(args[from])
}

/** Returns the paths in an argument, which is one path or a list of paths. */
export function pathsOf(value: unknown): readonly string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  return list.filter((path): path is string => typeof path === 'string' && path !== '')
}

function createTool(relations: readonly Relation[]): Tool {
  const agents = relations.map(({ key }) => key)
  const list = relations.map(({ key, description }) => `${key}: ${description}`).join('\n')
  return childTool({
    name: 'subagent_create',
    description: `Creates a subagent that lives on and can be messaged again.\n${list}`,
    parameters: {
      type: 'object',
      properties: {
        agent: { type: 'string', enum: agents },
        name: { type: 'string', minLength: 1, description: 'A name for this instance.' },
        message: { type: 'string', description: 'What it is to do.' },
        attachments: FILES,
        arguments: { type: 'object', description: 'Further arguments of the agent.' },
      },
      required: ['agent', 'name'],
    },
    run: async (args, { running, toolCallId }) => {
      const relation =
        relations.find(({ key }) => key === args['agent']) ??
        (relations.length === 1 && args['agent'] === undefined ? relations[0] : undefined)
      if (!relation)
        throw new Error(
          `There is no subagent "${String(args['agent'])}". Known: ${agents.join(', ')}.`,
        )
      const name = args['name']
      if (typeof name !== 'string' || name.trim() === '')
        throw new Error('subagent_create needs a non-empty "name" for the new instance.')
      return create(running, { relation, args, toolCallId })
    },
  })
}

/**
 * Reads the payload of `subagent_create`. If the call names no message or no attachments itself, they are
 * read from the properties of its `arguments` that the configuration of the child names for them.
 */
async function createdPayload(
  context: DrainContext,
  relation: Relation,
  args: JsonObject,
): Promise<Payload> {
  const argument = args['arguments'] ?? {}
  if (!isPlainObject(argument)) throw new Error('"arguments" of subagent_create must be an object.')
  const inner = await checked(promptOf(context, relation), relation.key, argument as JsonObject)
  const from = relation.config.initUserMessageProperty
  const fromArguments = from === undefined ? undefined : wordsIn(inner[from])
  const own = pathsOf(args['attachments'])
  return {
    message: wordsIn(args['message']) ?? fromArguments,
    attachments: own.length > 0 ? own : attachmentsOf(relation, inner),
    name: asText(args['name'])?.trim(),
    arguments: inner,
  }
}

async function create(
  call: SpawningCall,
  made: { readonly relation: Relation; readonly args: JsonObject; readonly toolCallId: string },
): Promise<unknown> {
  const { relation, args, toolCallId } = made
  const { drain, side } = call
  const env = drain.env(side)
  refuseDisabled(relation, env)
  refuseBeyondLimits(drain, relation)
  const payload = await payloadOf(drain, relation, args)
  const attachments = findFiles(drain, payload.attachments)
  await openRequest(drain) // also if the child waits for variables, and is created later
  const missing = missingVariables(relation, env)
  if (missing.length > 0) {
    const toolName = relation.isResumable ? 'subagent_create' : relation.key
    const request = { relation, side, missing, args, attachments, toolName, toolCallId }
    const { error, event } = variablesError(drain, request)
    call.plan = { reference: '', events: [event], others: [] }
    throw error
  }
  const isAwaited = relation.isBlocking
  const plan = planSpawn(drain, { relation, env, toolCallId, isAwaited, ...payload, attachments })
  call.plan = plan
  if (isAwaited)
    return defer({ kind: 'child', request: { reference: plan.reference, agent: relation.agent } })
  return `Subagent (reference: ${plan.reference}) was started. Its result will come as a message.`
}

/**
 * Begins the governed request of a session whose answers a gate checks, so that the audit log has it before the requests
 * of the subagents that work for it (UAICP §4.3).
 */
async function openRequest(drain: DrainContext): Promise<void> {
  if (checksAnswers(drain.agent)) await drain.governor()
}

function messageTool(relations: readonly Relation[]): Tool {
  return childTool({
    name: 'subagent_message',
    description: 'Sends a message to a subagent that was created before.',
    parameters: {
      type: 'object',
      properties: {
        reference: { type: 'string', description: 'The reference of the subagent.' },
        message: { type: 'string' },
        attachments: FILES,
      },
      required: ['reference', 'message'],
    },
    run: async (args, { running }) => message(running, relations, args),
  })
}

async function message(
  call: SpawningCall,
  relations: readonly Relation[],
  args: JsonObject,
): Promise<unknown> {
  const { drain } = call
  const { environment, state } = drain
  const reference = asText(args['reference'] ?? args['referenceId']) ?? ''
  const child = state.children.get(reference)
  const relation = relations.find(({ key }) => key === child?.created.relation)
  if (!child || !relation) {
    const keys = new Set(relations.map(({ key }) => key))
    const references = [...state.children.values()]
      .filter(({ created }) => keys.has(created.relation))
      .map(({ created }) => created.reference)
    const latest = references.slice(-MOST_NOTED)
    const list =
      latest.length > 0 ? `Known: ${latest.join(', ')}.` : 'Create one with subagent_create.'
    throw new Error(`There is no subagent with the reference "${reference}". ${list}`)
  }
  refuseDisabled(relation, drain.env(call.side))
  if (child.lifecycle === 'terminated')
    throw new Error(`Subagent (reference: ${reference}) was terminated and takes no more messages.`)
  const text = asText(args['message']) ?? ''
  const interruptId = relation.isBlocking ? environment.ids() : undefined
  const sources = findFiles(drain, pathsOf(args['attachments']))
  if (text.trim() === '' && sources.length === 0)
    throw new Error('subagent_message needs a "message" that is not empty, or attachments.')
  await openRequest(drain)
  const files = copyFiles(drain, sources, `${reference}/${environment.ids()}`)
  const append = [...files.events, messageToChild(drain, { text, files, relation, interruptId })]
  const at = drain.at()
  call.plan = {
    reference,
    events: [{ type: 'subagent_updated', at, reference, status: 'running' }],
    others: [{ id: reference, mustBeLive: true, append, wake: { by: environment.clock.now() } }],
    interruptId,
  }
  if (interruptId !== undefined)
    return defer({ kind: 'child', request: { reference, agent: relation.agent } })
  return `The message was sent to subagent (reference: ${reference}).`
}
