import type { JsonObject } from '@skein/base'
import { asList, asObject, isBase64, isJsonObject, isText, matches, type Report } from './report.ts'

/** The rules for request bodies, taken from the API reference and from errors that the API is known to return. */
export const googleRules = {
  contents: 'contents is a list with at least one entry',
  role: 'an entry has the role user or model',
  'first-role': 'the first entry is of the user',
  'last-role': 'the last entry is of the user',
  parts: 'an entry has at least one part',
  part: 'a part holds exactly one kind of data',
  'call-role':
    'function calls stand in entries of the model, function responses in those of the user',
  'call-place': 'a function call turn comes after a user turn or a function response turn',
  'call-args': 'the args of a function call are an object',
  'call-name': 'the name of a function matches ^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$',
  'call-signature': 'the first function call of a turn of Gemini 3 carries its thought signature',
  'signature-issued': 'a thought signature comes from this vendor',
  'response-place': 'a function response turn comes immediately after a function call turn',
  'response-count': 'there are as many function responses as function calls, in one entry',
  'response-match': 'a function response names its call, by name and by id where the call has one',
  'response-object': 'the response of a function is an object',
  'inline-data': 'inlineData has a mimeType and base64 data',
  'system-instruction': 'systemInstruction holds text parts',
  'function-declaration': 'a function has a valid, unique name and one form of parameters',
} as const

type Rule = keyof typeof googleRules

interface Entry {
  readonly role: string
  readonly path: string
  readonly parts: readonly JsonObject[]
  readonly calls: readonly JsonObject[]
  readonly responses: readonly JsonObject[]
}

/** Checks a request of `generateContent` strictly. */
export function checkGoogle(body: JsonObject, report: Report<Rule>): void {
  const system = body['systemInstruction']
  if (system !== undefined) {
    const parts = asList(asObject(system)['parts'])
    const isRight = parts.length > 0 && parts.every((part) => isText(asObject(part)['text']))
    report.check(isRight, 'system-instruction', 'systemInstruction')
  }
  const names = new Set<string>()
  asList(body['tools']).forEach((tool, index) => {
    asList(asObject(tool)['functionDeclarations']).forEach((item, i) => {
      const { name, parameters, parametersJsonSchema } = asObject(item)
      const isNamed = matches(name, functionName) && !names.has(String(name))
      const hasOneSchema = parameters === undefined || parametersJsonSchema === undefined
      const path = `tools[${index}].functionDeclarations[${i}]`
      report.check(isNamed && hasOneSchema, 'function-declaration', path)
      names.add(String(name))
    })
  })
  const list = asList(body['contents'])
  if (!report.check(list.length > 0, 'contents', 'contents')) return
  const entries = list.map((item, index) => {
    const content = asObject(item)
    const parts = asList(content['parts']).map(asObject)
    const pick = (name: string): readonly JsonObject[] =>
      parts.flatMap((part) => (part[name] === undefined ? [] : [asObject(part[name])]))
    return {
      role: String(content['role'] ?? 'user'),
      path: `contents[${index}]`,
      parts,
      calls: pick('functionCall'),
      responses: pick('functionResponse'),
    }
  })
  report.check(entries[0]?.role === 'user', 'first-role', 'contents[0]')
  report.check(entries.at(-1)?.role === 'user', 'last-role', entries.at(-1)!.path)
  entries.forEach((entry, index) => {
    checkEntry(entry, report)
    if (entry.calls.length > 0) checkCalls(entry, entries[index - 1], entries[index + 1], report)
    if (entry.responses.length > 0) {
      const isPlaced = (entries[index - 1]?.calls.length ?? 0) > 0
      report.check(isPlaced, 'response-place', entry.path)
    }
  })
}

const kinds = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
]

function checkEntry({ role, path, parts, calls, responses }: Entry, report: Report<Rule>): void {
  report.check(role === 'user' || role === 'model', 'role', path)
  report.check(parts.length > 0, 'parts', path)
  const isRight = role === 'model' ? responses.length === 0 : calls.length === 0
  report.check(isRight, 'call-role', path)
  parts.forEach((part, index) => {
    const at = `${path}.parts[${index}]`
    const partKinds = kinds.filter((kind) => part[kind] !== undefined)
    report.check(partKinds.length === 1, 'part', at)
    const signature = part['thoughtSignature']
    if (signature !== undefined) report.check(report.isIssued(signature), 'signature-issued', at)
    if (part['inlineData'] !== undefined) {
      const { mimeType, data } = asObject(part['inlineData'])
      report.check(isText(mimeType) && isBase64(data), 'inline-data', at)
    }
    if (part['functionResponse'] !== undefined) {
      const { response } = asObject(part['functionResponse'])
      report.check(isJsonObject(response), 'response-object', at)
    }
  })
}

const functionName = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/

function checkCalls(
  { calls, path, parts }: Entry,
  before: Entry | undefined,
  after: Entry | undefined,
  report: Report<Rule>,
): void {
  report.check(before?.role === 'user', 'call-place', path)
  for (const call of calls) {
    report.check(isJsonObject(call['args'] ?? {}), 'call-args', path)
    report.check(matches(call['name'], functionName), 'call-name', path)
  }
  const [, version] = /gemini-(\d+)/.exec(report.options.modelId ?? '') ?? []
  const first = parts.find((part) => part['functionCall'] !== undefined)
  const isSigned =
    Number(version) < 3 || version === undefined || isText(first?.['thoughtSignature'])
  report.check(isSigned, 'call-signature', path)
  const responses = after?.responses ?? []
  if (!report.check(responses.length === calls.length, 'response-count', after?.path ?? path))
    return
  const open = [...responses]
  for (const call of calls) {
    const index = open.findIndex(
      (response) => call['name'] === response['name'] && call['id'] === response['id'],
    )
    report.check(index >= 0, 'response-match', after!.path)
    open.splice(index < 0 ? 0 : index, 1)
  }
}
