import type { JsonObject } from '@skein/base'
import type { AssistantMessage, Message } from '../../contract/message.ts'
import type { LLMRequest, Params } from '../../contract/provider.ts'
import type { Tool, ToolCall } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { encodeHistory } from '../encode-history.ts'
import { bodyText, encodeOnce } from '../encode-once.ts'
import { mergeTools } from '../native-tools.ts'
import { nativeOf } from '../native.ts'
import { objectOf } from '../read-json.ts'
import { resultKey, resultKeys } from '../result-key.ts'
import { optionsOf } from '../wire-options.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'
import { encodeMessage } from './request-message.ts'
import { API, type OllamaDialect } from './types.ts'

/** Model options, which the server reads inside `options` and nowhere else. */
const modelOptions = new Set([
  'frequency_penalty',
  'min_p',
  'mirostat',
  'mirostat_eta',
  'mirostat_tau',
  'num_batch',
  'num_ctx',
  'num_gpu',
  'num_keep',
  'num_predict',
  'num_thread',
  'presence_penalty',
  'repeat_last_n',
  'repeat_penalty',
  'seed',
  'stop',
  'temperature',
  'tfs_z',
  'top_k',
  'top_p',
  'typical_p',
])

/**
 * `POST /chat`. Parameters go to the top of the body as they are (`think`, `format`, `keep_alive`,
 * `logprobs`, …); sampling options are written by the caller inside `options`, as the API has them.
 * `stream` is always said, because the server streams unless told not to.
 */
export function encodeRequest(
  request: LLMRequest,
  { provider, modelId }: Target<OllamaDialect>,
  mode: RequestMode,
): EncodedRequest {
  const { params, structure } = request
  const warnings = misplaced(params)
  const tools = mergeTools({
    provider,
    tools: request.tools.map((tool) => encodeTool(tool, provider)),
    native: params['tools'],
    namesOf: (tool) => [objectOf(tool['function'])?.['name']],
  })
  const fields: Record<string, unknown> = {
    model: modelId,
    ...(structure && { format: structure }),
    ...params,
    ...(tools && { tools }),
    stream: mode === 'stream',
  }
  const items = encodeMessages(request, provider, warnings)
  return { body: bodyText(fields, 'messages', items), path: '/chat', warnings }
}

/** The server ignores these without a word; the caller should not have to find out. */
function misplaced(params: Params): Warning[] {
  return Object.keys(params)
    .filter((name) => modelOptions.has(name))
    .map((name) => ({
      code: 'misplaced_parameter',
      message: `The server ignores "${name}" outside of options: write params: { options: { ${name} } }.`,
      pointer: `/params/${name}`,
    }))
}

function encodeTool(
  { name, description, parameters, metadata }: Tool,
  provider: string,
): JsonObject {
  return {
    type: 'function',
    function: {
      name,
      description,
      parameters: parameters as JsonObject, // a JSON Schema is JSON
      ...optionsOf(metadata, provider),
    },
  }
}

function encodeMessages(request: LLMRequest, provider: string, warnings: Warning[]): string {
  const { system, messages } = request
  const keys = resultKeys(`${API} ${provider}`)
  const isMarked = ({ metadata }: ToolCall): boolean =>
    nativeOf(metadata, provider, API)?.['id'] !== undefined
  const encodeAll = (list: readonly Message[], found: Warning[]): string[] => {
    let before: AssistantMessage | undefined
    return list.flatMap((message) => {
      if (message.type === 'assistant') before = message
      const key =
        message.type === 'tool_result' ? resultKey(message, before, keys, isMarked) : keys.plain
      const calls = before?.toolCalls ?? []
      const encode = (told: Warning[]): readonly JsonObject[] =>
        encodeMessage(message, { provider, calls, warnings: told })
      return encodeOnce(message, key, encode, found)
    })
  }
  const history = encodeHistory(messages, keys.plain, encodeAll, warnings)
  if (system === undefined) return history
  const prompt = JSON.stringify({ role: 'system', content: system })
  return history ? `${prompt},${history}` : prompt
}
