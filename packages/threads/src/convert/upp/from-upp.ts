import type { MessageJSON } from '@skein/base'
import { assistantParts, extrasOf, userParts } from '../../events/message-parts.ts'
import type { Converted } from '../../issue.ts'
import type { Thread } from '../../document/thread.ts'
import type { MessagePart } from '../../document/part.ts'
import { type ImportOptions, ThreadBuilder } from '../bridge/build.ts'
import { Losses } from '../bridge/walk.ts'

/**
 * Converts UPP messages to a thread. Fields that only UPP has are stored on the message or part, and
 * `toUppMessages` restores them.
 */
export function fromUppMessages(
  messages: readonly MessageJSON[],
  options?: ImportOptions,
): Converted<Thread> {
  const losses = new Losses()
  const builder = new ThreadBuilder(options)
  const names = new Map<string, string>()
  for (const [index, message] of messages.entries()) {
    const { id, timestamp, metadata } = message
    const fields: object = { message_id: id, upp_metadata: metadata }
    switch (message.type) {
      case 'user': {
        const parts = userParts(message.content, (block, reason) =>
          losses.add(`/${index}/content/${block}`, reason),
        )
        builder.user(parts, timestamp, fields)
        break
      }
      case 'assistant':
        for (const call of message.toolCalls ?? []) names.set(call.toolCallId, call.toolName)
        builder.response(assistantParts(message), timestamp, fields)
        break
      case 'tool_result': {
        const parts = message.results.map((entry): MessagePart => {
          const { toolCallId, result, isError, toolName } = entry
          return {
            part_kind: 'tool-return',
            tool_name: toolName ?? names.get(toolCallId) ?? '',
            tool_call_id: toolCallId,
            status: isError ? 'error' : 'success',
            content: result ?? null,
            ...extrasOf(entry),
          }
        })
        builder.request(parts, timestamp, fields)
        break
      }
      default:
        message satisfies never
    }
  }
  return { value: builder.build(), lost: losses.list }
}
