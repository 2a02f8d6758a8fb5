import { isObject } from '@skein/base'
import type { MessagePart, MultiModalContent } from './part.ts'
import { IssueCode, type IssueCollector } from './issue-code.ts'

type Fields = { readonly [key: string]: unknown }

/** Checks one part at the current position of `check`, and matches calls with their returns. */
export function checkPart(check: IssueCollector, part: unknown): void {
  if (!isObject(part)) return check.report(IssueCode.WrongType, '', 'an object')
  // Typed as one of the known kinds, so that a new kind does not compile until its check is written.
  const kind = part['part_kind'] as MessagePart['part_kind'] | 'system-prompt'
  switch (kind) {
    case 'text':
      check.text(part['content'], '/content')
      return check.optionalText(part['id'], '/id')
    case 'user-prompt': {
      const { content } = part
      if (!Array.isArray(content)) return check.text(content, '/content')
      return eachItem(check, content, (item) => {
        if (typeof item === 'string') return check.text(item, '')
        if (!isObject(item)) return check.report(IssueCode.WrongType, '', 'a string or an object')
        checkContent(check, item, '')
      })
    }
    case 'thinking':
      return checkThinking(check, part)
    case 'tool-call':
      return checkToolCall(check, part)
    case 'tool-return':
      return checkToolReturn(check, part)
    case 'retry-prompt':
      return checkRetryPrompt(check, part)
    case 'file': {
      const { id, content } = part
      check.optionalText(id, '/id')
      if (!isObject(content)) return check.missingOr(content, '/content', 'an object')
      return checkContent(check, content, '/content')
    }
    case 'builtin-tool-call':
    case 'builtin-tool-return':
      check.text(part['tool_name'], '/tool_name')
      return check.id(part['tool_call_id'], '/tool_call_id')
    case 'speech': {
      const { speaker } = part
      if (speaker !== 'user' && speaker !== 'assistant')
        check.unknownWord(IssueCode.BadValue, speaker, '/speaker', 'user or assistant')
      return check.optionalText(part['transcript'], '/transcript')
    }
    case 'compaction':
      return check.optionalText(part['content'], '/content')
    case 'tool-availability-delta':
      return
    case 'system-prompt':
      return check.report(IssueCode.InlineSystemPrompt, '')
    default:
      kind satisfies never
      return check.unknownWord(IssueCode.UnknownPartKind, kind, '/part_kind')
  }
}

function checkThinking(check: IssueCollector, part: Fields): void {
  check.optionalText(part['content'], '/content')
  check.optionalText(part['signature'], '/signature')
  check.optionalText(part['thinking_id'], '/thinking_id')
  const provider = part['provider_name']
  check.optionalText(provider, '/provider_name')
  // Thinking text needs no provider. A signature or id does, because it can only be sent back to the provider
  // that wrote it.
  if (
    (provider === undefined || provider === null) &&
    (part['signature'] || part['thinking_id'] || part['id'])
  ) {
    check.report(IssueCode.ThinkingWithoutProvider, '/provider_name')
  }
}

function checkToolCall(check: IssueCollector, part: Fields): void {
  check.text(part['tool_name'], '/tool_name')
  const id = part['tool_call_id']
  check.id(id, '/tool_call_id')
  const args = part['args']
  if (args === undefined) check.report(IssueCode.MissingField, '/args')
  else if (typeof args === 'number' || typeof args === 'boolean' || Array.isArray(args)) {
    check.report(IssueCode.UnusualArgs, '/args')
  }
  if (typeof id !== 'string') return
  const { turnIndex, messageIndex, partIndex } = check
  check.calls.call(id, { turnIndex, messageIndex, partIndex, toolName: part['tool_name'] })
}

function checkToolReturn(check: IssueCollector, part: Fields): void {
  check.text(part['tool_name'], '/tool_name')
  const id = part['tool_call_id']
  check.id(id, '/tool_call_id')
  const status = part['status']
  if (status !== 'success' && status !== 'error' && status !== 'validation_error') {
    const words = 'success, error or validation_error'
    check.unknownWord(IssueCode.BadValue, status, '/status', words)
  }
  if (part['content'] === undefined) check.report(IssueCode.MissingField, '/content')
  if (typeof id !== 'string') return
  // ThreadProtocol rule V2: a return answers one earlier call, of the same tool.
  const call = check.calls.answer(id)
  if (call === undefined) {
    const code = check.calls.knows(id) ? IssueCode.DuplicateReturn : IssueCode.ReturnWithoutCall
    check.report(code, '/tool_call_id')
  } else if (call.toolName !== part['tool_name']) {
    check.report(IssueCode.ToolNameMismatch, '/tool_name')
  }
}

function checkRetryPrompt(check: IssueCollector, part: Fields): void {
  check.optionalText(part['tool_name'], '/tool_name')
  const id = part['tool_call_id']
  check.optionalText(id, '/tool_call_id')
  // A retry without a tool name has a generated id and does not answer a call.
  if (typeof id === 'string' && typeof part['tool_name'] === 'string') check.calls.answer(id)
  const content = part['content']
  if (!Array.isArray(content)) return check.text(content, '/content')
  eachItem(check, content, (item) => {
    if (!isObject(item)) return check.report(IssueCode.WrongType, '', 'an object')
    check.text(item['type'], '/type')
    check.text(item['msg'], '/msg')
    if (!Array.isArray(item['loc'])) check.missingOr(item['loc'], '/loc', 'an array')
  })
}

function eachItem(
  check: IssueCollector,
  items: readonly unknown[],
  visit: (item: unknown) => void,
): void {
  for (let index = 0; index < items.length; index++) {
    check.itemIndex = index
    visit(items[index])
  }
  check.itemIndex = -1
}

function checkContent(check: IssueCollector, content: Fields, at: string): void {
  // Typed as one of the known kinds, so that a new kind does not compile until its check is written.
  const kind = content['kind'] as MultiModalContent['kind']
  switch (kind) {
    case 'image-url':
    case 'audio-url':
    case 'video-url':
    case 'document-url':
      return checkUrl(check, content, at)
    case 'binary':
      check.text(content['media_type'], `${at}/media_type`)
      check.text(content['identifier'], `${at}/identifier`)
      return checkBase64(check, content['data'], `${at}/data`)
    case 'text-content':
      return check.text(content['content'], `${at}/content`)
    case 'uploaded-file':
      check.text(content['file_id'], `${at}/file_id`)
      return check.text(content['provider_name'], `${at}/provider_name`)
    case 'cache-point':
      return
    default:
      kind satisfies never
      return check.unknownWord(IssueCode.UnknownContentKind, kind, `${at}/kind`)
  }
}

function checkUrl(check: IssueCollector, content: Fields, at: string): void {
  check.text(content['url'], `${at}/url`)
  check.text(content['identifier'], `${at}/identifier`)
  check.optionalText(content['media_type'], `${at}/media_type`)
  const force = content['force_download']
  if (force !== undefined && typeof force !== 'boolean' && force !== 'allow-local') {
    check.report(
      typeof force === 'string' ? IssueCode.BadValue : IssueCode.WrongType,
      `${at}/force_download`,
      'a boolean or allow-local',
    )
  }
}

/** Base64 in either alphabet, with or without padding. */
export const BASE64_PATTERN: string =
  '^(?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2}(?:==)?|[A-Za-z0-9+/_-]{3}=?)?$'

const NOT_BASE64 = /[^A-Za-z0-9+/_-]/

function checkBase64(check: IssueCollector, data: unknown, tail: string): void {
  if (typeof data !== 'string') return check.missingOr(data, tail, 'a string')
  // BASE64_PATTERN is not used here because it backtracks over every group; checking length and characters
  // separately is fast for data of any size.
  const padding = data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0
  const body = padding === 0 ? data : data.slice(0, -padding)
  const rest = body.length % 4
  const isPadded = padding === 0 ? rest !== 1 : rest + padding === 4
  if (!isPadded || NOT_BASE64.test(body)) check.report(IssueCode.BadBase64, tail)
}
