import type { JsonValue } from '@skein/base'
import { describe, expect, test } from 'vitest'
import type { WireName } from '../../contract/provider.ts'
import { checkTranscript, transcriptRules, type CheckOptions } from './check-transcript.ts'

/** Requests written from the vendors' documentation: right ones, and for each rule one that breaks it. */
interface Cases {
  readonly right: readonly JsonValue[]
  readonly wrong: Readonly<Record<string, JsonValue>>
  readonly options?: Readonly<Record<string, CheckOptions>>
}

const png = 'iVBORw0KGgo='
const schema = { type: 'object', properties: {} }

const anthropic = (...messages: JsonValue[]) => ({ model: 'm', max_tokens: 9, messages })
const aUser = (...content: JsonValue[]) => ({ role: 'user', content })
const aSays = (...content: JsonValue[]) => ({ role: 'assistant', content })
const hi = { role: 'user', content: 'Hi' }
const text = (value: string) => ({ type: 'text', text: value })
const use = (fields: object = {}) => ({
  type: 'tool_use',
  id: 't1',
  name: 'add',
  input: {},
  ...fields,
})
const result = (fields: object = {}) => ({
  type: 'tool_result',
  tool_use_id: 't1',
  content: '3',
  ...fields,
})
const thinking = { type: 'thinking', thinking: 'hm', signature: 's' }

const anthropicCases: Cases = {
  right: [
    anthropic(hi),
    anthropic(hi, aSays(thinking, text('I add.'), use()), aUser(result(), text('and?'))),
    anthropic(
      hi,
      aSays(use(), use({ id: 't2' })),
      aUser(result({ tool_use_id: 't2' })),
      aUser(result()),
    ),
    anthropic(hi, aSays({ type: 'redacted_thinking', data: 'x' }, text('Yes')), hi),
    {
      ...anthropic(
        aUser({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }),
      ),
      system: [text('Be brief.')],
      tools: [
        { name: 'add', input_schema: schema },
        { type: 'web_search_20260318', name: 'web_search' },
      ],
    },
    anthropic(hi, aSays(text('The answer is'))),
  ],
  wrong: {
    'max-tokens': { model: 'm', messages: [hi] },
    messages: anthropic(),
    role: anthropic(hi, { role: 'tool', content: 'x' }),
    'first-role': anthropic(aSays(text('Hello')), hi),
    content: anthropic(aUser(), hi),
    'text-empty': anthropic(aUser(text(''))),
    'block-type': anthropic(hi, aSays(result()), hi),
    'image-source': anthropic(
      aUser({ type: 'image', source: { type: 'base64', media_type: 'image/bmp', data: png } }),
    ),
    'tool-use-id': anthropic(
      hi,
      aSays(use({ id: 'google:0' })),
      aUser(result({ tool_use_id: 'google:0' })),
    ),
    'tool-use-unique': anthropic(hi, aSays(use()), aUser(result()), aSays(use()), aUser(result())),
    'tool-use-name': anthropic(hi, aSays(use({ name: 'a b' })), aUser(result())),
    'tool-use-input': anthropic(hi, aSays(use({ input: '{}' })), aUser(result())),
    'tool-use-answered': anthropic(hi, aSays(use(), use({ id: 't2' })), aUser(result())),
    'tool-result-orphan': anthropic(hi, aSays(text('x')), aUser(result())),
    'tool-result-once': anthropic(hi, aSays(use()), aUser(result(), result())),
    'tool-result-first': anthropic(hi, aSays(use()), aUser(text('so:'), result())),
    'thinking-signature': anthropic(hi, aSays({ ...thinking, signature: '' }, text('x')), hi),
    'redacted-data': anthropic(hi, aSays({ type: 'redacted_thinking' }, text('x')), hi),
    'thinking-last': anthropic(hi, aSays(text('x'), thinking), hi),
    'prefill-space': anthropic(hi, aSays(text('The answer is '))),
    system: { ...anthropic(hi), system: [text('')] },
    'tool-definition': {
      ...anthropic(hi),
      tools: [{ name: 'add', input_schema: { type: 'string' } }],
    },
  },
}

const chat = (...messages: JsonValue[]) => ({ model: 'm', messages })
const call = (fields: object = {}) => ({
  id: 'c1',
  type: 'function',
  function: { name: 'add', arguments: '{"a":1}' },
  ...fields,
})
const calls = (...tool_calls: JsonValue[]) => ({ role: 'assistant', content: null, tool_calls })
const answer = (fields: object = {}) => ({
  role: 'tool',
  tool_call_id: 'c1',
  content: '3',
  ...fields,
})

const chatCases: Cases = {
  right: [
    chat({ role: 'system', content: 'Be brief.' }, hi),
    chat(hi, calls(call(), call({ id: 'c2' })), answer({ tool_call_id: 'c2' }), answer(), hi),
    chat(hi, { role: 'assistant', content: 'Yes' }, { role: 'user', content: [text('so')] }),
    chat(hi, calls(call({ type: 'custom', custom: { name: 'sh', input: 'ls' } })), answer()),
    { ...chat(hi), stream: true, stream_options: { include_usage: true } },
    {
      ...chat(hi),
      tools: [{ type: 'function', function: { name: 'add', parameters: schema } }],
      response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } },
    },
  ],
  wrong: {
    model: { messages: [hi] },
    messages: chat(),
    role: chat({ role: 'model', content: 'x' }),
    'user-content': chat({ role: 'user', content: [{ type: 'image' }] }),
    'assistant-content': chat(hi, { role: 'assistant', content: null }, hi),
    'tool-calls': chat(hi, { role: 'assistant', content: 'x', tool_calls: [] }, hi),
    'call-id': chat(
      hi,
      calls(call({ id: 'c'.repeat(41) })),
      answer({ tool_call_id: 'c'.repeat(41) }),
    ),
    'call-unique': chat(hi, calls(call(), call()), answer()),
    'call-type': chat(hi, calls(call({ type: 'tool' })), answer()),
    'call-name': chat(hi, calls(call({ function: { name: 'a b', arguments: '{}' } })), answer()),
    'call-arguments': chat(
      hi,
      calls(call({ function: { name: 'add', arguments: '{"a":' } })),
      answer(),
    ),
    'call-answered': chat(hi, calls(call()), hi),
    'result-orphan': chat(hi, answer()),
    'result-once': chat(hi, calls(call()), answer(), answer()),
    'result-content': chat(hi, calls(call()), answer({ content: { a: 1 } })),
    'tool-definition': {
      ...chat(hi),
      tools: [{ type: 'function', function: { name: 'ä', parameters: schema } }],
    },
    'response-format': {
      ...chat(hi),
      response_format: { type: 'json_schema', json_schema: { schema } },
    },
    'stream-options': { ...chat(hi), stream_options: { include_usage: true } },
  },
}

const responses = (...input: JsonValue[]) => ({ model: 'm', input })
const rUser = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }
const rSays = (fields: object = {}) => ({
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text: 'x' }],
  ...fields,
})
const rCall = (fields: object = {}) => ({
  type: 'function_call',
  call_id: 'c1',
  name: 'add',
  arguments: '{}',
  ...fields,
})
const rOutput = (fields: object = {}) => ({
  type: 'function_call_output',
  call_id: 'c1',
  output: '3',
  ...fields,
})
const reasoning = (fields: object = {}) => ({
  type: 'reasoning',
  id: 'rs_1',
  summary: [],
  ...fields,
})

const responsesCases: Cases = {
  right: [
    { model: 'm', input: 'Hi' },
    responses(
      { role: 'user', content: 'Hi' },
      reasoning(),
      rCall({ id: 'fc_1' }),
      rOutput(),
      rSays({ id: 'msg_1' }),
    ),
    responses(rUser, reasoning(), reasoning({ id: 'rs_2' }), rSays(), rUser),
    responses(
      rUser,
      { type: 'custom_tool_call', call_id: 'c1', name: 'sh', input: 'ls' },
      {
        ...rOutput(),
        type: 'custom_tool_call_output',
      },
    ),
    { ...responses(rUser, reasoning({ encrypted_content: 'e' }), rSays(), rUser), store: false },
    {
      ...responses(rUser),
      tools: [{ type: 'function', name: 'add', parameters: schema }, { type: 'web_search' }],
      text: { format: { type: 'json_schema', name: 'answer', schema } },
    },
  ],
  wrong: {
    model: { input: 'Hi' },
    input: responses(),
    role: responses({ role: 'tool', content: 'x' }),
    'message-content': responses({ role: 'user', content: [{ type: 'text', text: 'x' }] }),
    'item-id': responses(rUser, rSays({ id: 'chatcmpl-1' }), rUser),
    'item-id-unique': responses(rUser, rSays({ id: 'msg_1' }), rSays({ id: 'msg_1' })),
    'call-id': responses(rUser, rCall({ call_id: '' }), rOutput({ call_id: '' })),
    'call-unique': responses(rUser, rCall(), rOutput(), rCall(), rOutput()),
    'call-name': responses(rUser, rCall({ name: 'a.b' }), rOutput()),
    'call-arguments': responses(rUser, rCall({ arguments: {} }), rOutput()),
    'call-answered': responses(rUser, rCall(), rUser),
    'output-orphan': responses(rUser, rOutput()),
    'output-once': responses(rUser, rCall(), rOutput(), rOutput()),
    'output-kind': responses(rUser, rCall(), { ...rOutput(), type: 'custom_tool_call_output' }),
    'output-content': responses(rUser, rCall(), rOutput({ output: { a: 1 } })),
    'reasoning-summary': responses(rUser, { type: 'reasoning', id: 'rs_1' }, rSays(), rUser),
    'reasoning-follows': responses(rUser, reasoning(), rUser),
    'reasoning-stored': { ...responses(rUser, reasoning(), rSays(), rUser), store: false },
    'reasoning-issued': responses(
      rUser,
      reasoning({ encrypted_content: 'foreign' }),
      rSays(),
      rUser,
    ),
    'tool-definition': {
      ...responses(rUser),
      tools: [{ type: 'function', name: 'add', parameters: {} }],
    },
    'text-format': { ...responses(rUser), text: { format: { type: 'json_schema', schema } } },
  },
  options: { 'reasoning-issued': { isIssued: (signature) => signature !== 'foreign' } },
}

const google = (...contents: JsonValue[]) => ({ contents })
const gUser = (...parts: JsonValue[]) => ({ role: 'user', parts })
const gModel = (...parts: JsonValue[]) => ({ role: 'model', parts })
const say = { text: 'Hi' }
const gCall = (fields: object = {}, beside: object = {}) => ({
  functionCall: { name: 'add', args: {}, ...fields },
  ...beside,
})
const gResponse = (fields: object = {}) => ({
  functionResponse: { name: 'add', response: { output: 3 }, ...fields },
})

const googleCases: Cases = {
  right: [
    google({ parts: [say] }),
    google(
      gUser(say),
      gModel({ text: 'hm', thought: true }, gCall(), gCall({ name: 'sub', id: 'x' })),
      gUser(gResponse(), gResponse({ name: 'sub', id: 'x' })),
    ),
    google(
      gUser(say),
      gModel(gCall()),
      gUser(gResponse()),
      gModel(gCall()),
      gUser(gResponse()),
      gUser(say),
    ),
    {
      ...google(gUser({ inlineData: { mimeType: 'image/png', data: png } })),
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      tools: [
        { functionDeclarations: [{ name: 'add', parametersJsonSchema: schema }] },
        { googleSearch: {} },
      ],
    },
  ],
  wrong: {
    contents: google(),
    role: google(gUser(say), { role: 'assistant', parts: [say] }, gUser(say)),
    'first-role': google(gModel(say), gUser(say)),
    'last-role': google(gUser(say), gModel(say)),
    parts: google(gUser()),
    part: google(gUser({ thoughtSignature: 'x' })),
    'call-role': google(gUser(gCall()), gUser(gResponse())),
    'call-place': google(gUser(say), gModel(say), gModel(gCall()), gUser(gResponse())),
    'call-args': google(gUser(say), gModel(gCall({ args: '{}' })), gUser(gResponse())),
    'call-name': google(gUser(say), gModel(gCall({ name: '9' })), gUser(gResponse({ name: '9' }))),
    'call-signature': google(gUser(say), gModel(gCall()), gUser(gResponse())),
    'signature-issued': google(
      gUser(say),
      gModel(gCall({}, { thoughtSignature: 'foreign' })),
      gUser(gResponse()),
    ),
    'response-place': google(gUser(say), gModel(say), gUser(gResponse())),
    'response-count': google(
      gUser(say),
      gModel(gCall(), gCall()),
      gUser(gResponse()),
      gUser(gResponse()),
    ),
    'response-match': google(gUser(say), gModel(gCall({ id: 'x' })), gUser(gResponse())),
    'response-object': google(gUser(say), gModel(gCall()), gUser(gResponse({ response: [3] }))),
    'inline-data': google(gUser({ inlineData: { mimeType: 'image/png', data: 'no base64!' } })),
    'system-instruction': { ...google(gUser(say)), systemInstruction: { parts: [] } },
    'function-declaration': {
      ...google(gUser(say)),
      tools: [{ functionDeclarations: [{ name: 'add' }, { name: 'add' }] }],
    },
  },
  options: {
    'call-signature': { modelId: 'gemini-3-pro' },
    'signature-issued': { isIssued: (signature) => signature !== 'foreign' },
  },
}

const bedrock = (...messages: JsonValue[]) => ({ messages, toolConfig: { tools: [bTool] } })
const bTool = { toolSpec: { name: 'add', inputSchema: { json: schema } } }
const bUser = (...content: JsonValue[]) => ({ role: 'user', content })
const bSays = (...content: JsonValue[]) => ({ role: 'assistant', content })
const bText = { text: 'Hi' }
const bHi = bUser(bText)
const bUse = (fields: object = {}) => ({
  toolUse: { toolUseId: 't1', name: 'add', input: {}, ...fields },
})
const bResult = (fields: object = {}) => ({
  toolResult: { toolUseId: 't1', content: [{ text: '3' }], ...fields },
})
const bThought = (signature: string) => ({
  reasoningContent: { reasoningText: { text: 'hm', signature } },
})

const bedrockCases: Cases = {
  right: [
    { messages: [bHi] },
    bedrock(bHi, bSays(bThought('s'), bText, bUse()), bUser(bResult(), bText)),
    bedrock(
      bHi,
      bSays(bUse(), bUse({ toolUseId: 't2' })),
      bUser(bResult({ toolUseId: 't2', content: [{ json: {} }] }), bResult()),
    ),
    {
      ...bedrock(
        bUser({ document: { format: 'pdf', name: 'a (1)', source: { bytes: png } } }, { cachePoint: { type: 'default' } }), // prettier-ignore
      ),
      system: [bText, { cachePoint: { type: 'default' } }],
      outputConfig: { textFormat: { structure: { jsonSchema: { schema: '{}' } } } },
    },
  ],
  wrong: {
    messages: { messages: [] },
    role: bedrock(bHi, bHi),
    'first-role': bedrock(bSays(bText), bHi),
    'last-role': bedrock(bHi, bSays(bText)),
    content: bedrock(bUser()),
    text: bedrock(bUser({ text: ' ' })),
    media: bedrock(bUser({ image: { format: 'png', source: { bytes: 'no base64!' } } })),
    'document-name': bedrock(bUser({ document: { format: 'pdf', name: 'a.pdf', source: { bytes: png } } })), // prettier-ignore
    reasoning: bedrock(bHi, bSays(bText, bThought('s')), bHi),
    'signature-issued': bedrock(bHi, bSays(bThought('foreign'), bText), bHi),
    'call-id': bedrock(bHi, bSays(bUse({ toolUseId: 'a b' })), bUser(bResult({ toolUseId: 'a b' }))), // prettier-ignore
    'call-input': bedrock(bHi, bSays(bUse({ input: '{}' })), bUser(bResult())),
    'call-answered': bedrock(bHi, bSays(bUse()), bUser(bText, bResult())),
    'result-content': bedrock(bHi, bSays(bUse()), bUser(bResult({ content: [{ text: '' }] }))),
    'tools-declared': { messages: [bHi, bSays(bUse()), bUser(bResult())] },
    'tool-definition': { ...bedrock(bHi), toolConfig: { tools: [bTool, bTool] } },
    system: { ...bedrock(bHi), system: [{ text: ' ' }] },
    format: { ...bedrock(bHi), outputConfig: { textFormat: { type: 'json_schema' } } },
  },
  options: { 'signature-issued': { isIssued: (signature) => signature !== 'foreign' } },
}

const interactions = (...input: JsonValue[]) => ({ model: 'm', input })
const iUser = (...content: JsonValue[]) => ({ type: 'user_input', content })
const iSays = (...content: JsonValue[]) => ({ type: 'model_output', content })
const iCall = (fields: object = {}) => ({
  type: 'function_call',
  id: 'c1',
  name: 'add',
  arguments: {},
  ...fields,
})
const iResult = (fields: object = {}) => ({
  type: 'function_result',
  call_id: 'c1',
  name: 'add',
  result: '3',
  ...fields,
})
const iHi = iUser(text('Hi'))

const interactionsCases: Cases = {
  right: [
    { model: 'm', input: 'Hi' },
    interactions(iHi, { type: 'thought', signature: 's' }, iSays(text('Yes')), iHi),
    interactions(
      iHi,
      iCall(),
      iCall({ id: 'c2' }),
      iResult(),
      iResult({ call_id: 'c2', result: [{ type: 'image', mime_type: 'image/png', data: png }] }),
    ),
    {
      ...interactions(iHi, iCall(), iResult(), iSays(text('3')), iHi),
      system_instruction: 'Be brief.',
      tools: [{ type: 'function', name: 'add', parameters: schema }, { type: 'google_search' }],
      response_format: { type: 'text', schema },
    },
    interactions(iHi, { type: 'google_search_call', id: 's' }, iSays(text('x')), iHi),
  ],
  wrong: {
    model: { input: 'Hi' },
    input: interactions(),
    step: interactions(iHi, { type: 'tool_use' }, iHi),
    'first-step': interactions(iSays(text('x')), iHi),
    'last-step': interactions(iHi, iSays(text('x'))),
    content: interactions(iUser()),
    text: interactions(iUser(text(''))),
    media: interactions(iUser({ type: 'image', mime_type: 'image/png', data: 'no base64!' })),
    thought: interactions(iHi, { type: 'thought' }, iHi),
    'signature-issued': interactions(iHi, { type: 'thought', signature: 'foreign' }, iHi),
    'call-id': interactions(iHi, iCall(), iCall(), iResult()),
    'call-name': interactions(iHi, iCall({ name: '9' }), iResult({ name: '9' })),
    'call-arguments': interactions(iHi, iCall({ arguments: '{}' }), iResult()),
    'call-answered': interactions(iHi, iCall(), iCall({ id: 'c2' }), iResult(), iHi),
    'result-match': interactions(iHi, iCall(), iResult({ name: 'sub' })),
    result: interactions(iHi, iCall(), iResult({ result: 3 })),
    'system-instruction': { ...interactions(iHi), system_instruction: '' },
    'tool-definition': { ...interactions(iHi), tools: [{ type: 'function', name: '9' }] },
    format: { ...interactions(iHi), response_format: { schema } },
  },
  options: { 'signature-issued': { isIssued: (signature) => signature !== 'foreign' } },
}

const ollama = (...messages: JsonValue[]) => ({ model: 'm', messages })
const oCalls = (fields: object = {}) => ({
  role: 'assistant',
  content: '',
  tool_calls: [{ function: { name: 'add', arguments: {}, ...fields } }],
})
const oResult = { role: 'tool', content: '3', tool_name: 'add' }

const ollamaCases: Cases = {
  right: [
    ollama(),
    ollama({ role: 'system', content: 'Be brief.' }, hi, oCalls(), oResult, hi),
    { ...ollama({ ...hi, images: [png] }), format: schema },
    { ...ollama(hi), tools: [{ type: 'function', function: { name: 'add', parameters: schema } }] },
  ],
  wrong: {
    model: { messages: [] },
    messages: { model: 'm' },
    role: ollama({ role: 'developer', content: 'x' }),
    content: ollama({ role: 'user', content: [text('x')] }),
    images: ollama({ ...hi, images: [`data:image/png;base64,${png}`] }),
    'call-name': ollama(hi, oCalls({ name: '' }), { ...oResult, tool_name: '' }),
    'call-arguments': ollama(hi, oCalls({ arguments: '{}' }), oResult),
    'call-answered': ollama(hi, oCalls(), hi),
    'result-name': ollama(hi, oCalls(), { ...oResult, tool_name: 'call_1' }),
    format: { ...ollama(hi), format: 'yaml' },
    'tool-definition': { ...ollama(hi), tools: [{ type: 'function', function: { name: 'add' } }] },
  },
}

const wires: Readonly<Record<WireName, Cases>> = {
  'anthropic-messages': anthropicCases,
  'openai-chat': chatCases,
  'openai-responses': responsesCases,
  'google-generate': googleCases,
  'google-interactions': interactionsCases,
  'bedrock-converse': bedrockCases,
  'ollama-chat': ollamaCases,
}

describe.each(Object.entries(wires))('%s', (name, { right, wrong, options }) => {
  const wire = name as WireName

  test.each(right.map((body, index) => ({ index, body })))('accepts request $index', ({ body }) => {
    expect(checkTranscript(wire, body)).toEqual([])
  })

  test.each(Object.keys(transcriptRules[wire]))('refuses what breaks the rule %s', (rule) => {
    const body = wrong[rule]
    expect(body, 'a case for every rule').toBeDefined()
    const issues = checkTranscript(wire, body!, options?.[rule])
    expect(issues.map((issue) => issue.rule)).toContain(rule)
    for (const { path, message } of issues) expect(message.startsWith(`${path}: `)).toBe(true)
  })

  test('has no case without a rule', () => {
    const known = Object.keys(transcriptRules[wire])
    expect(Object.keys(wrong).filter((rule) => !known.includes(rule))).toEqual([])
  })

  test('reads anything without an exception', () => {
    for (const body of [null, 7, 'x', [], {}, { messages: 3, contents: {}, input: [null] }])
      expect(checkTranscript(wire, body as JsonValue).length).toBeGreaterThan(0)
  })
})

test('a thinking block whose text was changed is not what was signed', () => {
  const issued = (signature: string, told: string | undefined) => signature === `for ${told}`
  const body = (thought: string) =>
    anthropic(hi, aSays({ type: 'thinking', thinking: thought, signature: 'for a' }, text('x')), hi)
  expect(checkTranscript('anthropic-messages', body('a'), { isIssued: issued })).toEqual([])
  expect(checkTranscript('anthropic-messages', body('b'), { isIssued: issued })).toHaveLength(1)
})
