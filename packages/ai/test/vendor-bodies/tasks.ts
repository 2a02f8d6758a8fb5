import type { JsonObject } from '@skein/base'
import {
  AssistantMessage,
  Document,
  Image,
  type History,
  type InferenceInput,
  type LLMOptions,
  type Params,
  ToolResultMessage,
  UserMessage,
} from '@skein/ai'

/** The tasks that every vendor's own SDK and this package are asked to send. */
export const taskNames = [
  'text',
  'system',
  'image',
  'document',
  'tools',
  'history',
  'structure',
  'stream',
  'reasoning',
  'sampling',
] as const
export type TaskName = (typeof taskNames)[number]

export const png = 'iVBORw0KGgo='
export const pdf = 'JVBERi0xLjQ='
export const schema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
} as const
export const callId = 'abcdef123'

const weather = {
  name: 'weather',
  description: 'The weather of a city.',
  parameters: schema,
  run: () => 'never',
}

/** One task as a call of this package. */
export interface OurCall {
  readonly options: Omit<LLMOptions, 'model'>
  readonly given: readonly [History | InferenceInput, ...InferenceInput[]]
  readonly isStreaming: boolean
}

/** Parameters of the vendor, where a task needs them. */
export type TaskParams = Partial<Record<TaskName | 'all', Params>>

export function ourCall(task: TaskName, params: TaskParams): OurCall {
  const call = (
    options: Omit<LLMOptions, 'model'>,
    ...given: [History | InferenceInput, ...InferenceInput[]]
  ): OurCall => ({
    options: { ...options, params: { ...params.all, ...params[task] } },
    given,
    isStreaming: task === 'stream',
  })
  switch (task) {
    case 'text':
    case 'stream':
    case 'reasoning':
    case 'sampling':
      return call({}, 'Hello')
    case 'system':
      return call({ system: 'Be brief.' }, 'Hello')
    case 'image':
      return call({}, 'What is it?', Image.fromBase64(png))
    case 'document':
      return call({}, Document.fromBase64(pdf, 'application/pdf', 'a.pdf'), 'Summarise.')
    case 'tools':
      return call({ tools: [weather] }, 'Weather?')
    case 'history':
      return call(
        { tools: [weather] },
        [
          new UserMessage('Weather?'),
          new AssistantMessage(
            [],
            [{ toolCallId: callId, toolName: 'weather', arguments: { city: 'Oslo' } }],
          ),
          new ToolResultMessage([{ toolCallId: callId, toolName: 'weather', result: 'rain' }]),
        ],
        'Thanks',
      )
    case 'structure':
      return call({ structure: schema }, 'Hello')
    default:
      return task satisfies never
  }
}

/** Where two JSON values differ: `+` only ours has it, `-` only theirs, `≠` both and not the same. */
export function differences(ours: unknown, theirs: unknown, at = ''): readonly string[] {
  if (isObject(ours) && isObject(theirs)) {
    return [...new Set([...Object.keys(ours), ...Object.keys(theirs)])].flatMap((key) => {
      if (!(key in theirs)) return [`+${at}/${key}=${JSON.stringify(ours[key])}`]
      if (!(key in ours)) return [`-${at}/${key}=${JSON.stringify(theirs[key])}`]
      return differences(ours[key], theirs[key], `${at}/${key}`)
    })
  }
  if (Array.isArray(ours) && Array.isArray(theirs) && ours.length === theirs.length)
    return ours.flatMap((item, index) => differences(item, theirs[index], `${at}/${index}`))
  return JSON.stringify(ours) === JSON.stringify(theirs) ? [] : [`≠${at}`]
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
