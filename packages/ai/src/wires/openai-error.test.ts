import type { JsonValue } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { readErrorBody, readOpenAIError } from './openai-error.ts'

// Bodies are written from the vendors' documentation; none is recorded traffic.
const cases: [string, number, JsonValue, object][] = [
  [
    'OpenAI: quota',
    429,
    {
      error: {
        message: 'You exceeded your current quota',
        type: 'insufficient_quota',
        code: 'insufficient_quota',
      },
    },
    { code: 'QUOTA_EXCEEDED', vendorCode: 'insufficient_quota', vendorType: 'insufficient_quota' },
  ],
  [
    'OpenAI: rate limit',
    429,
    { error: { message: 'Rate limit reached', type: 'tokens', code: 'rate_limit_exceeded' } },
    { code: 'RATE_LIMITED', vendorType: 'tokens' },
  ],
  [
    'OpenAI: context',
    400,
    {
      error: {
        message: 'too long',
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
      },
    },
    { code: 'CONTEXT_LENGTH_EXCEEDED' },
  ],
  [
    'OpenAI: model',
    404,
    {
      error: {
        message: 'The model does not exist',
        type: 'invalid_request_error',
        code: 'model_not_found',
      },
    },
    { code: 'MODEL_NOT_FOUND' },
  ],
  [
    'OpenAI: key',
    401,
    {
      error: {
        message: 'Incorrect API key',
        type: 'invalid_request_error',
        code: 'invalid_api_key',
      },
    },
    { code: 'AUTHENTICATION_FAILED' },
  ],
  [
    'xAI: key',
    400,
    {
      code: 'Client specified an invalid argument',
      error: 'Incorrect API key provided: xa***. You can obtain one from the console.',
    },
    { code: 'AUTHENTICATION_FAILED', vendorCode: 'Client specified an invalid argument' },
  ],
  [
    'OpenAI: a field',
    400,
    {
      error: {
        message: "Unknown parameter: 'x'",
        type: 'invalid_request_error',
        param: 'x',
        code: 'unknown_parameter',
      },
    },
    { code: 'INVALID_REQUEST', vendorCode: 'unknown_parameter' },
  ],
  [
    'Azure: content filter',
    400,
    {
      error: {
        message: 'filtered',
        code: 'content_filter',
        innererror: { code: 'ResponsibleAIPolicyViolation' },
      },
    },
    { code: 'CONTENT_FILTERED' },
  ],
  [
    'Azure: deployment',
    404,
    { error: { code: 'DeploymentNotFound', message: 'no such deployment' } },
    { code: 'MODEL_NOT_FOUND' },
  ],
  [
    'OpenRouter: credits',
    402,
    { error: { code: 402, message: 'Insufficient credits' } },
    { code: 'QUOTA_EXCEEDED', vendorCode: '402' },
  ],
  [
    'OpenRouter: moderation',
    403,
    {
      error: { code: 403, message: 'Your input was flagged', metadata: { reasons: ['violence'] } },
    },
    { code: 'CONTENT_FILTERED' },
  ],
  [
    'OpenRouter: the upstream in its own words',
    400,
    {
      error: {
        code: 400,
        message: 'Provider returned error',
        metadata: { raw: 'bad field', error_type: 'context_length_exceeded' },
      },
    },
    { code: 'CONTEXT_LENGTH_EXCEEDED', message: 'Provider returned error: bad field' },
  ],
  [
    'xAI: flat',
    400,
    { code: 'Client specified an invalid argument', error: 'Model not found: grok-0' },
    { code: 'INVALID_REQUEST', message: 'Model not found: grok-0' },
  ],
  [
    'DeepSeek: balance',
    402,
    {
      error: {
        message: 'Insufficient Balance',
        type: 'unknown_error',
        code: 'invalid_request_error',
      },
    },
    { code: 'QUOTA_EXCEEDED' },
  ],
  [
    'Moonshot: quota',
    429,
    { error: { message: 'exceeded', type: 'exceeded_current_quota_error' } },
    { code: 'QUOTA_EXCEEDED' },
  ],
  [
    'Moonshot: overloaded',
    429,
    { error: { message: 'overloaded', type: 'engine_overloaded_error' } },
    { code: 'PROVIDER_ERROR' },
  ],
  [
    'Mistral: validation list',
    422,
    { detail: [{ loc: ['body', 'temperature'], msg: 'too hot', type: 'x' }] },
    { code: 'INVALID_REQUEST', message: 'body.temperature: too hot' },
  ],
  [
    'Mistral: nested list',
    422,
    {
      object: 'error',
      message: { detail: [{ loc: ['body'], msg: 'bad' }] },
      type: 'invalid_request_error',
    },
    { code: 'INVALID_REQUEST', message: 'body: bad' },
  ],
  [
    'Mistral: key',
    401,
    { message: 'Unauthorized', request_id: 'r' },
    { code: 'AUTHENTICATION_FAILED' },
  ],
  [
    'Mistral: model',
    400,
    { object: 'error', message: 'Invalid model: x', type: 'invalid_model', code: '1500' },
    { code: 'MODEL_NOT_FOUND' },
  ],
  [
    'Groq: context in words',
    400,
    {
      error: {
        message: 'Please reduce the length. Maximum context length is 8192',
        type: 'invalid_request_error',
      },
    },
    { code: 'CONTEXT_LENGTH_EXCEEDED' },
  ],
  [
    'Groq: size of the request is not the context',
    413,
    {
      error: {
        message: 'Request Entity Too Large',
        type: 'invalid_request_error',
        code: 'request_too_large',
      },
    },
    { code: 'INVALID_REQUEST' },
  ],
  [
    'Cerebras: flat',
    401,
    {
      message: 'Wrong API Key',
      type: 'invalid_request_error',
      param: 'api_key',
      code: 'wrong_api_key',
    },
    { code: 'AUTHENTICATION_FAILED' },
  ],
  [
    'vLLM: flat',
    400,
    {
      object: 'error',
      message: "This model's maximum context length is 4096 tokens",
      type: 'BadRequestError',
      code: 400,
    },
    { code: 'CONTEXT_LENGTH_EXCEEDED' },
  ],
  [
    'llama.cpp',
    400,
    {
      error: {
        code: 400,
        message: 'the request exceeds the available context size',
        type: 'exceed_context_size_error',
      },
    },
    { code: 'CONTEXT_LENGTH_EXCEEDED' },
  ],
  [
    'LM Studio: text',
    400,
    { error: 'No model loaded' },
    { code: 'INVALID_REQUEST', message: 'No model loaded' },
  ],
  [
    'a word of JavaScript',
    500,
    { error: { code: 'constructor', message: 'm' } },
    { code: 'PROVIDER_ERROR' },
  ],
]

describe('readOpenAIError', () => {
  test.each(cases)('%s', (_, status, json, expected) => {
    const headers = new Headers({ 'x-request-id': 'req_1' })
    const error = readOpenAIError({ status, headers, json, text: JSON.stringify(json) })
    expect(error).toMatchObject({ ...expected, requestId: 'req_1' })
    expect(error.message).not.toContain('[object Object]')
  })

  test('text that is no JSON is the message', () => {
    const response = { status: 502, headers: new Headers(), json: undefined, text: 'Bad Gateway\n' }
    expect(readOpenAIError(response)).toEqual({ message: 'Bad Gateway' })
    expect(readOpenAIError({ ...response, text: '' })).toEqual({ message: 'HTTP 502' })
  })

  test('an answer is not an error', () => {
    expect(readErrorBody({ id: 'x', choices: [] })).toBeUndefined()
    expect(readErrorBody('text')).toBeUndefined()
  })
})
