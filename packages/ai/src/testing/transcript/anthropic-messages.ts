import type { JsonObject, JsonValue } from '@skein/base'
import { asList, asObject, isBase64, isJsonObject, isText, matches, type Report } from './report.ts'

/** The rules for request bodies, taken from the API reference and from errors that the API is known to return. */
export const anthropicRules = {
  'max-tokens': 'max_tokens is required and a whole number above 0',
  messages: 'messages is a list with at least one message',
  role: 'a message has the role user or assistant',
  'first-role': 'the first message is of the user',
  content: 'only the last assistant message may be without content',
  'text-empty': 'text blocks are not empty',
  'block-type': 'the block may not stand in a message of this role',
  'image-source': 'an image has base64 data of a known type, an https address or a file id',
  'tool-use-id': 'the id of a tool_use matches ^[a-zA-Z0-9_-]+$',
  'tool-use-unique': 'ids of tool_use blocks are unique',
  'tool-use-name': 'the name of a tool matches ^[a-zA-Z0-9_-]{1,128}$',
  'tool-use-input': 'the input of a tool_use is an object',
  'tool-use-answered': 'every tool_use has its tool_result in the next message',
  'tool-result-orphan': 'a tool_result belongs to a tool_use of the message before',
  'tool-result-once': 'a tool_use has one tool_result',
  'tool-result-first': 'tool_result blocks come before all other content',
  'thinking-signature': 'a thinking block carries the signature it was given, its text unchanged',
  'redacted-data': 'a redacted_thinking block carries its data',
  'thinking-last': 'the final block of an assistant message is not thinking',
  'prefill-space': 'an assistant message at the end does not end in white space',
  system: 'system is a text or a list of text blocks',
  'tool-definition': 'a tool has a valid, unique name and a schema of type object',
} as const

type Rule = keyof typeof anthropicRules

interface Turn {
  readonly role: string
  readonly path: string
  readonly blocks: readonly { readonly block: JsonObject; readonly path: string }[]
}

/** Checks a request of `POST /v1/messages` strictly. */
export function checkAnthropic(body: JsonObject, report: Report<Rule>): void {
  const limit = body['max_tokens']
  report.check(Number.isInteger(limit) && Number(limit) > 0, 'max-tokens', 'max_tokens')
  const system = body['system']
  const isSystem =
    system === undefined ||
    typeof system === 'string' ||
    (Array.isArray(system) && system.every((block) => isText(asObject(block)['text'])))
  report.check(isSystem, 'system', 'system')
  const names = new Set<string>()
  asList(body['tools']).forEach((item, index) => {
    const tool = asObject(item)
    const { name } = tool
    const isOwn = tool['type'] === undefined || tool['type'] === 'custom'
    const hasSchema = !isOwn || asObject(tool['input_schema'])['type'] === 'object'
    const isRight = matches(name, toolName) && !names.has(String(name)) && hasSchema
    report.check(isRight, 'tool-definition', `tools[${index}]`)
    names.add(String(name))
  })
  const messages = asList(body['messages'])
  if (!report.check(messages.length > 0, 'messages', 'messages')) return
  const turns = toTurns(messages, report)
  report.check(turns[0]?.role === 'user', 'first-role', 'messages[0]')
  const callIds = new Set<string>()
  turns.forEach((turn, index) => {
    if (turn.role === 'assistant') checkAssistant(turn, turns[index + 1], callIds, report)
    else checkUser(turn, turns[index - 1], report)
  })
}

/** Merges neighbouring messages of the same role, as the API does before it applies its rules. */
function toTurns(messages: readonly JsonValue[], report: Report<Rule>): readonly Turn[] {
  const turns: (Turn & { blocks: { block: JsonObject; path: string }[] })[] = []
  messages.forEach((item, index) => {
    const path = `messages[${index}]`
    const { role, content } = asObject(item)
    if (!report.check(role === 'user' || role === 'assistant', 'role', path)) return
    const blocks = blocksOf(content, `${path}.content`)
    const mayBeEmpty = role === 'assistant' && index === messages.length - 1
    report.check(blocks.length > 0 || mayBeEmpty, 'content', path)
    for (const { block, path: at } of blocks) {
      if (block['type'] === 'text') report.check(isText(block['text']), 'text-empty', at)
    }
    const last = turns.at(-1)
    if (last && last.role === role) last.blocks.push(...blocks)
    else turns.push({ role: role as string, path, blocks: [...blocks] })
  })
  return turns
}

function blocksOf(
  content: JsonValue | undefined,
  path: string,
): readonly { block: JsonObject; path: string }[] {
  if (typeof content === 'string') {
    return content === '' ? [] : [{ block: { type: 'text', text: content }, path }]
  }
  return asList(content).map((block, index) => ({
    block: asObject(block),
    path: `${path}[${index}]`,
  }))
}

const userBlocks = new Set(['text', 'image', 'document', 'search_result', 'tool_result'])

function checkUser(turn: Turn, before: Turn | undefined, report: Report<Rule>): void {
  const open = new Set(idsOf(before, 'tool_use', 'id'))
  const answeredIds = new Set<string>()
  let isResultsOver = false
  for (const { block, path } of turn.blocks) {
    const type = String(block['type'])
    const isKnown = userBlocks.has(type) || type === 'container_upload'
    report.check(isKnown, 'block-type', path)
    if (type === 'image') checkImage(block, path, report)
    if (type !== 'tool_result') {
      isResultsOver = true
      continue
    }
    const id = String(block['tool_use_id'])
    report.check(!isResultsOver, 'tool-result-first', path)
    report.check(open.has(id), 'tool-result-orphan', path)
    report.check(!answeredIds.has(id), 'tool-result-once', path)
    answeredIds.add(id)
    asList(block['content']).forEach((inner, index) => {
      const at = `${path}.content[${index}]`
      const { type: kind, text } = asObject(inner)
      if (kind === 'text') report.check(isText(text), 'text-empty', at)
      if (kind === 'image') checkImage(asObject(inner), at, report)
    })
  }
}

function idsOf(turn: Turn | undefined, type: string, field: string): readonly string[] {
  return (turn?.blocks ?? [])
    .filter(({ block }) => block['type'] === type)
    .map(({ block }) => String(block[field]))
}

const imageTypes = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

function checkImage(block: JsonObject, path: string, report: Report<Rule>): void {
  const source = asObject(block['source'])
  const isRight =
    source['type'] === 'base64'
      ? imageTypes.has(String(source['media_type'])) && isBase64(source['data'])
      : source['type'] === 'url'
        ? /^https?:\/\//.test(String(source['url']))
        : source['type'] === 'file' && isText(source['file_id'])
  report.check(isRight, 'image-source', path)
}

function checkAssistant(
  turn: Turn,
  next: Turn | undefined,
  known: Set<string>,
  report: Report<Rule>,
): void {
  const answers = new Set(idsOf(next, 'tool_result', 'tool_use_id'))
  for (const { block, path } of turn.blocks) {
    const type = String(block['type'])
    const isUsers = type === 'tool_result' || type === 'image' || type === 'document'
    report.check(!isUsers, 'block-type', path)
    if (type === 'tool_use') {
      const id = String(block['id'])
      report.check(matches(block['id'], /^[a-zA-Z0-9_-]+$/), 'tool-use-id', path)
      report.check(!known.has(id), 'tool-use-unique', path)
      known.add(id)
      report.check(matches(block['name'], toolName), 'tool-use-name', path)
      report.check(isJsonObject(block['input']), 'tool-use-input', path)
      report.check(answers.has(id), 'tool-use-answered', path)
    }
    if (type === 'thinking') {
      const text = typeof block['thinking'] === 'string' ? block['thinking'] : undefined
      const isRight = text !== undefined && report.isIssued(block['signature'], text)
      report.check(isRight, 'thinking-signature', path)
    }
    if (type === 'redacted_thinking') {
      report.check(report.isIssued(block['data']), 'redacted-data', path)
    }
  }
  const last = turn.blocks.at(-1)
  const lastType = String(last?.block['type'])
  report.check(!lastType.endsWith('thinking'), 'thinking-last', last?.path ?? turn.path)
  if (!next && lastType === 'text') {
    const text = String(last?.block['text'])
    report.check(text === text.trimEnd(), 'prefill-space', last?.path ?? turn.path)
  }
}

const toolName = /^[a-zA-Z0-9_-]{1,128}$/
