import type { MessageJSON } from '@skein/base'
import type { RuntimeEvent } from '../contract/event.ts'

/**
 * Returns an event of a thread that is erased, without anything that was said, shown, read or written. Fields
 * not listed here are dropped.
 */
export function erasedEvent(event: RuntimeEvent): RuntimeEvent[] {
  const { at } = event
  switch (event.type) {
    case 'thread_created': {
      const { type, threadId, agent, version, depth, parent, parentThreadId } = event
      const links = { parent, parentThreadId }
      return [{ type, at, threadId, agent, version, depth, ...links }]
    }
    case 'agent_registered':
    case 'turn_start':
    case 'step_start':
    case 'step_end':
    case 'thread_terminated':
    case 'usage_recorded':
      return [event]
    case 'model_requested': {
      const { type, logId, stepId, turnId, attempt, side, prompt, toolCallId } = event
      const { provider, model } = event
      const place = { logId, stepId, turnId, attempt, side, prompt, toolCallId, provider, model }
      return [{ type, at, ...place, frame: '', adds: [] }]
    }
    case 'model_answered': {
      const { error, ...rest } = event
      return [error ? { ...rest, error: { code: error.code, message: '' } } : rest]
    }
    case 'agent_handoff': {
      const { type, turnId, fromAgentId, toAgentId } = event
      return [{ type, at, turnId, fromAgentId, toAgentId }]
    }
    case 'turn_end': {
      const { type, turnId, outcome } = event
      return [{ type, at, turnId, outcome }]
    }
    case 'session_start': {
      const { type, sessionId, agent, definitions } = event
      return [{ type, at, sessionId, agent, definitions }]
    }
    case 'session_end': {
      const { type, sessionId, outcome, reason } = event
      return [{ type, at, sessionId, outcome, reason }]
    }
    case 'message_added': {
      const { type, turnId, side, stepId, agentId, usage, costUsd, message } = event
      return [
        {
          type,
          at,
          turnId,
          side,
          message: erasedMessage(message),
          stepId,
          agentId,
          usage,
          costUsd,
        },
      ]
    }
    case 'tool_execution_start': {
      const { type, turnId, toolCallId, toolName, epoch } = event
      return [{ type, at, turnId, toolCallId, toolName, epoch }]
    }
    case 'tool_execution_end': {
      const { type, turnId, toolCallId, toolName, outcome } = event
      return [{ type, at, turnId, toolCallId, toolName, outcome, result: null }]
    }
    case 'late_result': {
      const { type, turnId, toolCallId, toolName, outcome } = event
      return [{ type, at, turnId, toolCallId, toolName, outcome, result: null }]
    }
    case 'subagent_created': {
      const { type, reference, name, relation, parentCommunication } = event
      return [{ type, at, reference, name, relation, parentCommunication }]
    }
    case 'subagent_ended': {
      const { type, reference, outcome } = event
      return [{ type, at, reference, outcome }]
    }
    default:
      return []
  }
}

function erasedMessage(message: MessageJSON): MessageJSON {
  const { id, timestamp } = message
  switch (message.type) {
    case 'user':
      return { id, type: 'user', timestamp, content: [] }
    case 'assistant': {
      const toolCalls = message.toolCalls?.map(({ toolCallId, toolName }) => ({
        toolCallId,
        toolName,
        arguments: {},
      }))
      return { id, type: 'assistant', timestamp, content: [], toolCalls }
    }
    case 'tool_result': {
      const results = message.results.map(({ toolCallId }) => ({ toolCallId, result: null }))
      return { id, type: 'tool_result', timestamp, results }
    }
  }
}
