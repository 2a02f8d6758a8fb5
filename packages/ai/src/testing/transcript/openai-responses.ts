import type { JsonObject } from '@skein/base'
import { asList, asObject, isJsonObject, isText, matches, type Report } from './report.ts'

/** The rules for request bodies, taken from the API reference and from errors that the API is known to return. */
export const openaiResponsesRules = {
  model: 'model is required',
  input: 'input is a text or a list with at least one item',
  role: 'a message has a known role',
  'message-content':
    'parts of a message fit its role: input_* for users, output_text or refusal else',
  'item-id': 'the id of an item begins as its type demands (msg, rs, fc, ctc …)',
  'item-id-unique': 'an item appears once',
  'call-id': 'the call_id is a text of 1 to 64 characters',
  'call-unique': 'the call_id of a call is unique',
  'call-name': 'the name of a function matches ^[a-zA-Z0-9_-]{1,128}$',
  'call-arguments': 'the arguments of a call are text',
  'call-answered': 'every call has its output later in the input',
  'output-orphan': 'an output belongs to a call before it',
  'output-once': 'a call has one output',
  'output-kind':
    'the output of a custom tool is a custom_tool_call_output, and the other way round',
  'output-content': 'the output is a text or a list of input parts',
  'reasoning-summary': 'a reasoning item has an id and a summary list',
  'reasoning-follows': 'a reasoning item is followed by the item it belongs to',
  'reasoning-stored': 'with store: false, a reasoning item carries its encrypted content',
  'reasoning-issued': 'encrypted content comes from this vendor',
  'tool-definition': 'a function tool has a valid, unique name and a schema or null',
  'text-format': 'a json_schema format has a name and a schema',
} as const

type Rule = keyof typeof openaiResponsesRules

const calls: Readonly<Record<string, string>> = {
  function_call: 'function_call_output',
  custom_tool_call: 'custom_tool_call_output',
}
const outputs = new Set(Object.values(calls))
const prefixes: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  custom_tool_call: 'ctc',
}
const functionName = /^[a-zA-Z0-9_-]{1,128}$/

/** Checks a request of `POST /v1/responses` strictly. */
export function checkOpenAIResponses(body: JsonObject, report: Report<Rule>): void {
  report.check(isText(body['model']), 'model', 'model')
  const names = new Set<string>()
  asList(body['tools']).forEach((item, index) => {
    const { type, name, parameters } = asObject(item)
    if (type !== 'function') return
    const isNamed = matches(name, functionName) && !names.has(String(name))
    const hasSchema = parameters === null || asObject(parameters)['type'] === 'object'
    report.check(isNamed && hasSchema, 'tool-definition', `tools[${index}]`)
    names.add(String(name))
  })
  const format = asObject(asObject(body['text'])['format'])
  if (format['type'] === 'json_schema')
    report.check(
      isText(format['name']) && isJsonObject(format['schema']),
      'text-format',
      'text.format',
    )
  const { input } = body
  if (typeof input === 'string') return
  const items = asList(input).map(asObject)
  if (!report.check(items.length > 0, 'input', 'input')) return
  new InputCheck(items, body['store'] !== false, report).run()
}

class InputCheck {
  readonly #items: readonly JsonObject[]
  readonly #isStored: boolean
  readonly #report: Report<Rule>
  readonly #ids = new Set<string>()
  readonly #calls = new Map<
    string,
    { readonly type: string; readonly path: string; answered: number }
  >()

  constructor(items: readonly JsonObject[], isStored: boolean, report: Report<Rule>) {
    this.#items = items
    this.#isStored = isStored
    this.#report = report
  }

  run(): void {
    this.#items.forEach((item, index) => {
      const path = `input[${index}]`
      const type = typeOf(item)
      this.#checkId(item, type, path)
      if (type === 'message') this.#checkMessage(item, path)
      else if (type === 'reasoning') this.#checkReasoning(item, index, path)
      else if (type in calls) this.#checkCall(item, type, path)
      else if (outputs.has(type)) this.#checkOutput(item, type, path)
    })
    for (const { path, answered } of this.#calls.values())
      this.#report.check(answered > 0, 'call-answered', path)
  }

  #checkId({ id }: JsonObject, type: string, path: string): void {
    if (id === undefined) return
    const prefix = prefixes[type] ?? ''
    this.#report.check(isText(id) && id.startsWith(prefix), 'item-id', path)
    this.#report.check(!this.#ids.has(String(id)), 'item-id-unique', path)
    this.#ids.add(String(id))
  }

  #checkMessage({ role, content }: JsonObject, path: string): void {
    const isKnown =
      role === 'user' || role === 'assistant' || role === 'system' || role === 'developer'
    if (!this.#report.check(isKnown, 'role', path)) return
    const parts = asList(content).map((part) => String(asObject(part)['type']))
    const fits = (type: string): boolean =>
      role === 'assistant'
        ? type === 'output_text' || type === 'refusal'
        : type.startsWith('input_')
    const isRight = typeof content === 'string' || (parts.length > 0 && parts.every(fits))
    this.#report.check(isRight, 'message-content', path)
  }

  #checkReasoning(item: JsonObject, index: number, path: string): void {
    const { id, summary, encrypted_content: encrypted } = item
    this.#report.check(isText(id) && Array.isArray(summary), 'reasoning-summary', path)
    const next = this.#items.slice(index + 1).find((one) => typeOf(one) !== 'reasoning')
    this.#report.check(next !== undefined && isOutput(next), 'reasoning-follows', path)
    this.#report.check(this.#isStored || isText(encrypted), 'reasoning-stored', path)
    if (isText(encrypted))
      this.#report.check(this.#report.isIssued(encrypted), 'reasoning-issued', path)
  }

  #checkCall(item: JsonObject, type: string, path: string): void {
    const id = item['call_id']
    this.#report.check(isText(id) && id.length <= 64, 'call-id', path)
    this.#report.check(!this.#calls.has(String(id)), 'call-unique', path)
    this.#report.check(matches(item['name'], functionName), 'call-name', path)
    const argumentText = item[type === 'function_call' ? 'arguments' : 'input']
    this.#report.check(typeof argumentText === 'string', 'call-arguments', path)
    this.#calls.set(String(id), { type, path, answered: 0 })
  }

  #checkOutput(item: JsonObject, type: string, path: string): void {
    const call = this.#calls.get(String(item['call_id']))
    const parts = asList(item['output'])
    const isRight =
      typeof item['output'] === 'string' ||
      (parts.length > 0 &&
        parts.every((part) => String(asObject(part)['type']).startsWith('input_')))
    this.#report.check(isRight, 'output-content', path)
    if (!this.#report.check(call !== undefined, 'output-orphan', path)) return
    this.#report.check(calls[call!.type] === type, 'output-kind', path)
    call!.answered += 1
    this.#report.check(call!.answered === 1, 'output-once', path)
  }
}

function typeOf(item: JsonObject): string {
  return String(item['type'] ?? 'message')
}

/** Checks whether an item is output of the model, to which a reasoning item can belong. */
function isOutput(item: JsonObject): boolean {
  const type = typeOf(item)
  return type === 'message' ? item['role'] === 'assistant' : !outputs.has(type)
}
