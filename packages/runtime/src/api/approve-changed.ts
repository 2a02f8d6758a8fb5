import { messageToJSON, type ToolCall } from '@skein/ai'
import { argumentParserOf, canonicalJson, isPlainObject, messageOf, type JsonObject, type MessageJSON, type RecordedArguments } from '@skein/base'
import { checkSchema, type NamedSchemas } from '@skein/base/shape'
import type { InterruptAnswer } from '@skein/threads'
import { load, type ApiContext } from './api-context.ts'
import { approveCall, notGrantable, type SignApproval } from './approve-call.ts'
import { editThread } from './edit-thread.ts'
import { answerEvent, checkNotExcluded, checkSeenDigest, openQuestion } from './open-question.ts'
import { partialApprovalEvent } from './partial-approvals.ts'
import { RuntimeError } from '../contract/error.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { ApprovalDecision } from '../contract/inbox.ts'
import { argumentsToRun, findCall, sentArguments } from '../state/calls.ts'
import { registryOf, sideOf, type KernelState } from '../state/kernel-state.ts'
import { waitingCount } from '../state/questions.ts'
import { jsonCopy } from '../thread/facade-buffer.ts'
import { foreseeAdmission } from '../calls/session-governor.ts'

/**
 * Denies a call, and makes and approves another one with changed arguments in its place, in one commit. The new call
 * has its own id and digest: the governor judges it as any other call, before anything is written and again before it
 * runs.
 */
export async function approveChanged(
  context: ApiContext,
  decision: ApprovalDecision & { readonly with: JsonObject },
  sign: SignApproval,
): Promise<void> {
  const { threadId, interruptId, by, reason } = decision
  const { head, state: now } = await load(context, threadId)
  const question = openQuestion(context, now, interruptId, 'approval')
  const original = findCall(now, question.interrupt.toolCallId)
  if (decision.grantForMs !== undefined)
    throw notGrantable(interruptId, 'its arguments are changed')
  if (!original || question.effectId !== undefined || decision.tokens)
    throw new RuntimeError(`The request ${interruptId} cannot be approved with changes.`, {
      code: 'ANSWER_INVALID',
      hint: 'Only calls can be changed, and only the runtime signs the changed call.',
    })
  const { call, entry } = original
  const { toolCallId, toolName } = call.call
  const { args, sent, parsed } = await checkedChange(context, now, toolName, decision.with)
  if (canonicalJson(args) === canonicalJson(argumentsToRun(call)))
    return approveCall(context, decision, sign)
  checkSeenDigest(question, decision)
  const changedTo = context.ids()
  const turnId = question.turnId
  const registry = registryOf(context.registry, now)
  const other = sentArguments(sent, args)
  const proposal = { tool: toolName, args, turnId, ...(other && { sent: other }) }
  const admission = await foreseeAdmission(
    {
      agent: registry.agent(now.agent),
      head,
      state: now,
      environment: { ...context, registry },
    },
    { ...proposal, id: `${entry.message.id}:${changedTo}`, toolCallId: changedTo },
  )
  if (admission.type === 'deny')
    throw new RuntimeError(`"${toolName}" may not be called with these arguments.`, {
      code: 'ANSWER_INVALID',
      hint: `The policy says: ${admission.reasons.map(({ code, detail }) => detail ?? code).join('; ')}.`,
    })
  const request = admission.type === 'review' ? admission.request : undefined
  if (request) checkNotExcluded(request, interruptId, by)
  const token = request && (await sign(request, by))
  await editThread(context, { threadId, point: 'approve' }, ({ state }) => {
    const open = openQuestion(context, state, interruptId, 'approval')
    const { entry: current } = findCall(state, toolCallId)!
    const at = context.at()
    const why = `A person changed its arguments. The call ${changedTo} runs in its place.`
    const newCall: ToolCall = {
      toolCallId: changedTo,
      toolName,
      arguments: sent,
      metadata: { skein: { changedFrom: toolCallId } },
    }
    const append: RuntimeEvent[] = [
      answerEvent(context, decision, { type: 'deny', reason: why }),
      {
        type: 'message_updated',
        at,
        messageId: current.message.id,
        message: withCallAfter(messageToJSON(current.message), toolCallId, newCall),
      },
      { type: 'call_changed', at, turnId: open.turnId, toolCallId, changedTo, parsed, by },
    ]
    let waiting = waitingCount(state, context.clock.now()) - 1
    if (request) {
      const own = context.ids()
      const interrupt = { id: own, toolCallId: changedTo, kind: 'approval', request } as const
      const expiresAt = open.expiresAt !== undefined && { expiresAt: open.expiresAt }
      const place = { at, turnId: open.turnId, parsed }
      append.push({ type: 'interrupt_opened', ...place, interrupt, ...expiresAt })
      if (request.quorum > 1) {
        waiting++
        append.push(partialApprovalEvent(context, { threadId, interruptId: own, by }, [token!]))
      } else {
        const approval: InterruptAnswer = { type: 'approve', token: [token!], reason }
        append.push(answerEvent(context, { interruptId: own, by }, approval))
      }
    }
    const wake = { by: context.clock.now() }
    return { result: undefined, change: { append, head: { waiting }, wake } }
  })
}

interface ChangedArguments {
  /** What the person gave, as a model sends it. */
  readonly sent: JsonObject
  /** The arguments with which the call runs. */
  readonly args: JsonObject
  /** The same, if the tool has parsed them. */
  readonly parsed: RecordedArguments | undefined
}

/** Has the tool parse a copy of changed arguments. Throws if they do not fit its schema. */
async function checkedChange(
  context: ApiContext,
  state: KernelState,
  toolName: string,
  given: JsonObject,
): Promise<ChangedArguments> {
  const args = jsonCopy(given, {
    subject: `The changed arguments of "${toolName}"`,
    code: 'ANSWER_INVALID',
    maxBytes: context.limits.maxMessageBytes,
  })
  const agent = registryOf(context.registry, state).agent(state.agent)
  const side = sideOf(agent, state.session?.turn ?? { side: 'a' })
  const binding = side.prompt.tools.find((one) => one.name === toolName)
  const invalid = (why: string): RuntimeError =>
    new RuntimeError(`"${toolName}" cannot be called with these arguments: ${why}.`, {
      code: 'ANSWER_INVALID',
      hint: 'Nothing was recorded; the call still waits.',
    })
  if (binding?.kind !== 'tool' || !binding.tool.run) throw invalid('its tool does not run here')
  if (!isPlainObject(args)) throw invalid('they are not an object')
  const members = args as JsonObject // a plain object of JSON
  const parser = argumentParserOf(binding.tool)
  // A schema decides by itself what fits: of what it coerces, its JSON Schema names only the type that it makes.
  if (parser) {
    const result = await parser.parse(members).catch((error: unknown) => {
      throw invalid(messageOf(error).replace(/\.$/, ''))
    })
    return { sent: members, args: result, parsed: { arguments: result, schema: parser.schema } }
  }
  const { parameters } = binding.tool
  const definitions = Object.entries((parameters['$defs'] ?? {}) as NamedSchemas)
  const named = Object.fromEntries(definitions.map(([key, schema]) => [`#/$defs/${key}`, schema]))
  const problems = checkSchema(args, parameters, { field: 'arguments', named })
  if (problems.length > 0)
    throw invalid(problems.map(({ field, message }) => `${field} ${message}`).join('; '))
  return { sent: members, args: members, parsed: undefined }
}

/** Returns the message with the call `made` inserted directly after the call `toolCallId`. */
function withCallAfter(message: MessageJSON, toolCallId: string, made: ToolCall): MessageJSON {
  const { toolCalls = [] } = message as { readonly toolCalls?: readonly ToolCall[] }
  const place = toolCalls.findIndex((one) => one.toolCallId === toolCallId)
  return { ...message, toolCalls: toolCalls.toSpliced(place + 1, 0, made) } as MessageJSON
}
