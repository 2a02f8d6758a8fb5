import type { ToolAdmission, ToolCall } from '@skein/ai'
import type { JsonObject, JsonValue } from '@skein/base'
import type { AdmittedCall } from '@skein/governance'
import type { DrainContext } from '../context/drain-context.ts'
import { callIdOf, sentArguments } from '../state/calls.ts'
import { effectiveRisk } from '../governance/in-doubt.ts'
import { approvalAnswer } from './approval-answer.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'
import type { SessionGovernor } from '../governance/session-governor.ts'

/**
 * Asks the governor whether a call may run. If a person was asked before, the answer is read from the log. `call` has
 * the parsed arguments, `sent` is what the model sent.
 */
export async function admitCall(
  context: DrainContext,
  tool: ToolDefinition,
  call: ToolCall,
  sent: JsonObject,
): Promise<{ readonly admission: ToolAdmission; readonly admitted?: AdmittedCall }> {
  const governor = await context.governor()
  const answer = approvalAnswer(context, call.toolCallId)
  const governedRequest = governedCall(context, call, tool.name)
  const other = sentArguments(sent, call.arguments)
  const admission = await governor.admit(
    other ? { ...governedRequest, sent: other } : governedRequest,
    answer,
  )
  switch (admission.type) {
    case 'allow': {
      const record = admission.call
      // The tool has to run with exactly the arguments that the governor judged. The same JSON keeps the order of its
      // members: the governor's copy has them sorted.
      const judgedArguments = record.args as JsonObject // the arguments of a call are always an object
      const isSame = sentArguments(judgedArguments, call.arguments) === undefined
      return {
        admission: { type: 'allow', arguments: isSame ? call.arguments : judgedArguments },
        admitted: record,
      }
    }
    case 'replay': {
      // The governor has a record of this call already: it was committed together with the outcome of another
      // call, and a crash came before the result of this call was committed. A read can simply run again.
      if (effectiveRisk(tool, call.arguments) === 'read_only')
        return { admission: { type: 'allow' } }
      const reason = 'The call was made before, and its result is in the history.'
      return { admission: { type: 'deny', reason } }
    }
    case 'review': {
      const request = admission.request as unknown as JsonValue // an approval request is JSON
      return { admission: { type: 'defer', request: { kind: 'approval', request } } }
    }
    case 'deny': {
      const reasons = admission.reasons.map(({ code, detail }) =>
        detail === undefined ? code : `${code} (${detail})`,
      )
      const reason = `The call was refused: ${reasons.join(', ')}.`
      return { admission: { type: 'deny', reason } }
    }
  }
}

/** Describes a call for the governor; `tool` is the name of the tool that runs. */
export function governedCall(
  { state }: DrainContext,
  call: ToolCall,
  tool: string,
): Parameters<SessionGovernor['admit']>[0] & { readonly turnId: string } {
  const { toolCallId, arguments: args } = call
  const turnId = state.session?.turn?.id ?? ''
  return { id: callIdOf(state, toolCallId), toolCallId, tool, args, turnId }
}
