import type { JsonObject } from '@skein/base'
import { asList, asObject, isBase64, isJsonObject, isText, matches, type Report } from './report.ts'

/** The rules for request bodies, taken from the types of `@google/genai` and the rules of `generateContent`. */
export const interactionsRules = {
  model: 'a model or an agent is named',
  input: 'input is a text or a list with at least one step',
  step: 'a step has a known type',
  'first-step': 'the first step is input of the user',
  'last-step': 'the last step is input of the user or the result of a function',
  content: 'the content of a step is a list of known types with at least one entry',
  text: 'a text is not empty',
  media: 'media have a mime_type, and base64 data or a uri',
  thought: 'a thought has a signature or a summary of texts and images',
  'signature-issued': 'a signature comes from this vendor',
  'call-id': 'a function call has an id that no other call of its turn has',
  'call-name': 'the name of a function matches ^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$',
  'call-arguments': 'the arguments of a function call are an object',
  'call-answered': 'a function call has one result before the next step of the user or the model',
  'result-match':
    'a result names an open call by its id, and the name of its function if it has one',
  result: 'a result is a text, an object or a list of contents',
  'system-instruction': 'system_instruction is a text that is not empty',
  'tool-definition': 'a function has a valid, unique name and an object as its parameters',
  format: 'response_format has a type, and a schema that is an object',
} as const

type Rule = keyof typeof interactionsRules

const contents = ['text', 'image', 'audio', 'video', 'document']
/** The steps of tools that the vendor runs. */
const hosted =
  /^(code_execution|url_context|google_search|google_maps|file_search|mcp_server_tool|retrieval|processing)_(call|result)$/
const functionName = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/

/** Checks a request of `POST /interactions` strictly. */
export function checkInteractions(body: JsonObject, report: Report<Rule>): void {
  const { model, agent, input, system_instruction: system, response_format: format } = body
  report.check(isText(model) || isText(agent), 'model', 'model')
  if (system !== undefined) report.check(isText(system), 'system-instruction', 'system_instruction')
  if (format !== undefined) {
    const { type, schema } = asObject(format)
    const isRight = isText(type) && (schema === undefined || isJsonObject(schema))
    report.check(isRight, 'format', 'response_format')
  }
  checkTools(body, report)
  if (isText(input)) return
  const steps = asList(input).map(asObject)
  if (!report.check(steps.length > 0, 'input', 'input')) return
  report.check(steps[0]!['type'] === 'user_input', 'first-step', 'input[0]')
  const isInput = ['user_input', 'function_result'].includes(String(steps.at(-1)!['type']))
  report.check(isInput, 'last-step', `input[${steps.length - 1}]`)
  const checker = new StepCheck(report)
  steps.forEach((step, index) => checker.check(step, `input[${index}]`))
  checker.end(`input[${steps.length - 1}]`)
}

function checkTools(body: JsonObject, report: Report<Rule>): void {
  const names = new Set<string>()
  asList(body['tools']).forEach((item, index) => {
    const { type, name, parameters } = asObject(item)
    if (type !== 'function') return
    const isNamed = matches(name, functionName) && !names.has(String(name))
    const hasSchema = parameters === undefined || isJsonObject(parameters)
    report.check(isNamed && hasSchema, 'tool-definition', `tools[${index}]`)
    names.add(String(name))
  })
}

/** Checks steps in their order, with the calls that have no result yet. */
class StepCheck {
  readonly #report: Report<Rule>
  readonly #open = new Map<string, string>()
  #hasResult = false

  constructor(report: Report<Rule>) {
    this.#report = report
  }

  check(step: JsonObject, at: string): void {
    const report = this.#report
    const { type, signature } = step
    if (signature !== undefined) report.check(report.isIssued(signature), 'signature-issued', at)
    // A model may call several functions before any result, and nothing may come between their results.
    if (type !== 'function_result' && (this.#hasResult || type === 'user_input')) this.end(at)
    switch (type) {
      case 'user_input':
      case 'model_output':
        return this.#content(step, at)
      case 'thought': {
        const summary = asList(step['summary']).map(asObject)
        const isTold = summary.length > 0 && summary.every((part) => isText(part['type']))
        report.check(isText(signature) || isTold, 'thought', at)
        return
      }
      case 'function_call':
        return this.#call(step, at)
      case 'function_result':
        return this.#result(step, at)
      default:
        report.check(typeof type === 'string' && hosted.test(type), 'step', at)
    }
  }

  /** Reports the calls that have no result. */
  end(at: string): void {
    this.#report.check(this.#open.size === 0, 'call-answered', at)
    this.#open.clear()
    this.#hasResult = false
  }

  #content(step: JsonObject, at: string): void {
    const list = asList(step['content']).map(asObject)
    const isKnown = list.every(({ type }) => contents.includes(String(type)))
    this.#report.check(list.length > 0 && isKnown, 'content', at)
    list.forEach((item, index) => this.#part(item, `${at}.content[${index}]`))
  }

  #part({ type, text, data, uri, mime_type: mimeType }: JsonObject, at: string): void {
    if (type === 'text') return void this.#report.check(isText(text), 'text', at)
    const isRight = isText(mimeType) && (uri === undefined ? isBase64(data) : isText(uri))
    this.#report.check(isRight, 'media', at)
  }

  #call({ id, name, arguments: args }: JsonObject, at: string): void {
    this.#report.check(isText(id) && !this.#open.has(id), 'call-id', at)
    this.#report.check(matches(name, functionName), 'call-name', at)
    this.#report.check(isJsonObject(args), 'call-arguments', at)
    this.#open.set(String(id), String(name))
  }

  #result({ call_id: id, name, result }: JsonObject, at: string): void {
    const called = this.#open.get(String(id))
    const isMatch = called !== undefined && (name === undefined || name === called)
    this.#report.check(isMatch, 'result-match', at)
    this.#open.delete(String(id))
    this.#hasResult = true
    const isValue = typeof result === 'string' || isJsonObject(result) || Array.isArray(result)
    this.#report.check(isValue, 'result', at)
    asList(result).forEach((item, index) => {
      const part = asObject(item)
      const place = `${at}.result[${index}]`
      if (this.#report.check(contents.includes(String(part['type'])), 'result', place))
        if (part['type'] !== 'text') this.#part(part, place)
    })
  }
}
