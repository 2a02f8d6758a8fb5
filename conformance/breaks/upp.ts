import type { Breaks } from './break.ts'

/** How each row of UPP, first half can be violated. See `break.ts`. */
export const breaks: Breaks = {
  'UPP-001': [
    {
      clause: 'names are in camelCase',
      in: 'ai/src/index.ts',
      swap: [
        "export { llm, type LLMInstance, type LLMOptions } from './llm.ts'",
        "export { llm, llm as create_llm, type LLMInstance, type LLMOptions } from './llm.ts'",
      ],
    },
    {
      clause: 'a stream is an async iterable',
      in: 'ai/StreamResult',
      swap: ['[Symbol.asyncIterator](): AsyncIterator', 'events(): AsyncIterator'],
    },
  ],
  'UPP-002': [
    {
      clause: 'a structure may be a schema of a library',
      in: 'ai/turn/request/toStructure',
      swap: ['return toJsonSchema(structure)', 'return structure as JsonSchema'],
    },
    {
      clause: 'the parameters of a tool may be a schema of a library',
      in: 'ai/LLM.constructor',
      swap: ['if (!isStandardSchema(tool.parameters)) return tool', 'if (tool) return tool'],
    },
  ],
  'UPP-003': [
    {
      clause: 'data that does not fit the schema passes',
      in: 'ai/TurnDraft.turn',
      swap: [
        'const data = readData ? readData(structure, parsed) : parsed',
        `if (structure['type'] === 'object' && (typeof parsed !== 'object' || parsed === null))
      throw new UPPError('no object', { code: ErrorCode.InvalidResponse, ...this.#origin })
    const data = readData ? readData(structure, parsed) : parsed`,
      ],
    },
    {
      clause: 'there is no validator among the dependencies',
      in: 'ai/package.json',
      swap: [
        '"@skein/base": "0.1.0"\n  },\n  "dev',
        '"@skein/base": "0.1.0",\n    "ajv": "8.17.1"\n  },\n  "dev',
      ],
    },
  ],
  'UPP-004': [
    {
      clause: 'params that nobody knows pass',
      in: 'ai/LLM.constructor',
      swap: [
        'params: params as Params,',
        `params: Object.fromEntries(
        Object.entries(params).filter(([, value]) => typeof value !== 'object'),
      ),`,
      ],
    },
    {
      clause: 'a wire does not change a value',
      in: 'ai/wires/openai-chat/request/encodeRequest',
      swap: [
        '...structure.fields, ...params }',
        "...structure.fields, ...params, temperature: Math.round(Number(params['temperature'])) }",
      ],
    },
    {
      clause: 'params of an embedding pass',
      in: 'ai/Embedder.middlewareRun',
      swap: ['{ ...params, ...options.params } : params', '{ ...params, ...options.params } : {}'],
    },
    {
      clause: 'params of an image pass',
      in: 'ai/ImageMaker.middlewareRun',
      swap: ['{ ...fields, params, config', '{ ...fields, params: {}, config'],
    },
  ],
  'UPP-005': [
    {
      clause: 'the core has no defaults of its own',
      in: 'ai/LLM.constructor',
      swap: ['params = {}', 'params = { temperature: 1 }'],
    },
    {
      clause: 'a wire has no defaults of its own',
      in: 'ai/wires/openai-responses/request/encodeRequest',
      swap: ['model: modelId,', "model: modelId,\n    truncation: 'auto',"],
    },
    {
      clause: 'a param is not changed by a setting',
      in: 'ai/withSettings',
      swap: ['{ ...params, ...request.params }', '{ ...request.params, ...params }'],
    },
  ],
  'UPP-006': [
    {
      clause: 'the vendor chooses what is not given',
      in: 'ai/wires/anthropic-messages/request/encodeRequest',
      swap: ['model: modelId,', 'model: modelId,\n    temperature: 1,'],
    },
    {
      clause: 'the vendor chooses what is not given, in a stream too',
      in: 'ai/wires/google-generate/request/encodeRequest',
      swap: [
        ': generation\n',
        ": (generation ?? (mode === 'stream' ? { maxOutputTokens: 4096 } : undefined))\n",
      ],
    },
  ],
  'UPP-007': [
    {
      clause: 'there is no further entry point',
      in: 'ai/src/index.ts',
      swap: [
        "export { llm, type LLMInstance, type LLMOptions } from './llm.ts'",
        "export { llm, llm as converse, type LLMInstance, type LLMOptions } from './llm.ts'",
      ],
    },
    {
      clause: 'the namespace has the three modalities only',
      in: 'ai/ai',
      swap: ['= { llm, embedding, image }', '= { llm, embedding, image, chat: llm }'],
    },
    {
      clause: 'an instance serves one modality',
      in: 'ai/LLM.generate',
      swap: ['async generate(', 'async embed(): Promise<void> {}\n\n  async generate('],
    },
  ],
  'UPP-008': [
    {
      clause: 'an instance keeps no history',
      in: 'ai/LLM.toMessages',
      swap: [
        'return toMessages(given, { ids, clock, origin: this.#origin })',
        `const made = toMessages(given, { ids, clock, origin: this.#origin })
    const own = this as unknown as { past?: readonly Message[] }
    const messages = [...(own.past ?? []), ...made.messages]
    own.past = messages
    return { ...made, messages }`,
      ],
    },
    {
      clause: 'generate waits for the complete answer',
      in: 'ai/LLM.generate',
      swap: ['{ streaming: false }', '{ streaming: true }'],
    },
    {
      clause: 'stream streams',
      in: 'ai/LLM.stream',
      swap: ['streaming: true', 'streaming: false'],
    },
    {
      clause: 'the system prompt is configuration',
      in: 'ai/LLM.constructor',
      swap: ['...(system !== undefined && { system }),', ''],
    },
  ],
  'UPP-009': [
    {
      clause: 'no file imports an SDK',
      in: 'ai/src/vendors/anthropic.ts',
      swap: [
        'import { defineVendor',
        "import type {} from '@anthropic-ai/sdk'\nimport { defineVendor",
      ],
    },
    {
      clause: 'no file loads one while it runs',
      in: 'ai/LLM.generate',
      swap: [
        'async generate(',
        "sdk = (): unknown => import('@anthropic-ai/sdk')\n\n  async generate(",
      ],
    },
    {
      clause: 'no SDK is a dependency',
      in: 'ai/package.json',
      swap: [
        '"@skein/base": "0.1.0"\n  },\n  "dev',
        '"@skein/base": "0.1.0",\n    "openai": "7.53.0"\n  },\n  "dev',
      ],
    },
  ],
  'UPP-010': [
    {
      clause: 'the namespace has the functions themselves',
      in: 'ai/ai',
      swap: [
        '= { llm, embedding, image }',
        '= { llm: (options) => llm(options), embedding, image }',
      ],
    },
    {
      clause: 'the namespace is the default export',
      in: 'ai/src/index.ts',
      swap: [
        "export { ai, ai as default } from './ai.ts'",
        "export { ai } from './ai.ts'\nexport { llm as default } from './llm.ts'",
      ],
    },
  ],
  'UPP-011': [
    {
      clause: 'a factory gives references to a model',
      in: 'ai/createProvider',
      swap: [
        'Object.freeze({ modelId, provider,',
        'Object.freeze({ modelId: `${name}/${modelId}`, provider,',
      ],
    },
    {
      clause: 'usable for embeddings',
      in: 'ai/defineVendor',
      swap: ['embedding: embedding?.(endpoint),', ''],
    },
    {
      clause: 'usable for images',
      in: 'ai/defineVendor',
      swap: ['image: image?.(endpoint),', ''],
    },
  ],
  'UPP-012': [
    {
      clause: 'a key may be a string',
      in: 'ai/resolveKey',
      swap: ["if (typeof apiKey === 'string') return checkKey(apiKey, context)", ''],
    },
    {
      clause: 'a key may be a function',
      in: 'ai/resolveKey',
      swap: [
        "typeof apiKey === 'function' ? apiKey : () => apiKey.getKey()",
        '() => apiKey.getKey()',
      ],
    },
    {
      clause: 'a strategy is asked for each request',
      in: 'ai/resolveKey',
      swap: [
        'return askForKey(ask, context)',
        'return ((apiKey as { once?: Promise<string> }).once ??= askForKey(ask, context))',
      ],
    },
    {
      clause: 'a blank key is refused',
      in: 'ai/transport/endpoint/checkKey',
      swap: ["key.trim() !== ''", "key !== ''"],
    },
  ],
  'UPP-013': [
    {
      clause: 'baseUrl replaces the address of the vendor',
      in: 'ai/Attempt.prepare',
      swap: [
        'config.baseUrl ?? endpoint.baseUrl',
        '(config.fetch ? undefined : config.baseUrl) ?? endpoint.baseUrl',
      ],
    },
    {
      clause: 'its prefix is kept',
      in: 'ai/joinUrl',
      swap: ['${url.origin}${prefix}${pathname}', '${url.origin}${pathname}'],
    },
    {
      clause: 'it may end in slashes',
      in: 'ai/joinUrl',
      swap: [
        "while (url.pathname[end - 1] === '/') end--",
        "if (url.pathname[end - 1] === '/') end--",
      ],
    },
    {
      clause: 'it carries no password',
      in: 'ai/parseBase',
      swap: ["url.username !== '' || url.password !== ''", 'false'],
    },
  ],
  'UPP-014': [
    {
      clause: 'the timeout holds while the body comes',
      in: 'ai/Attempt.open',
      swap: ['this.#response = response', 'this.#watchdog.stop()\n    this.#response = response'],
    },
    {
      clause: 'the first byte has a limit',
      in: 'ai/limitsOf',
      swap: ["ms('timeouts.firstByteMs', timeouts?.firstByteMs) ?? idleMs", 'idleMs'],
    },
    {
      clause: 'a timeout that is no time is refused',
      in: 'ai/contract/error/positive',
      swap: ["typeof value === 'number' && value > 0", "typeof value === 'number'"],
    },
  ],
  'UPP-015': [
    {
      clause: 'the custom fetch gets retries, too',
      in: 'ai/pickTransport',
      swap: [
        'if (fetch) return fetchTransport(fetch)',
        `if (fetch)
    return fetchTransport(async (input, init) => {
      const own = fetch as Fetch & { isUsed?: boolean }
      if (own.isUsed) return new Response('{}', { status: 400 })
      own.isUsed = true
      return fetch(input, init)
    })`,
      ],
    },
    {
      clause: 'a global fetch that was replaced is used',
      in: 'ai/callPlatformFetch',
      swap: [
        'globalThis.fetch(input, init)',
        "Promise.resolve(new Response('{}', { status: 400 }))",
      ],
    },
  ],
  'UPP-016': [
    {
      clause: 'the strategy of the configuration is used',
      in: 'ai/VendorRun.constructor',
      swap: ['call.config.retryStrategy ?? defaultRetry', '{ onRetry: () => null }'],
    },
    {
      clause: 'the strategy is asked about each failure',
      in: 'ai/VendorRun.delay',
      swap: [
        'let delay: number | null',
        'let delay: number | null\n    if (this.#failures > 1) return null',
      ],
    },
  ],
  'UPP-017': [
    {
      clause: 'custom headers are sent',
      in: 'ai/requestHeaders',
      swap: ['request, config.headers ?? {}]', 'request]'],
    },
    {
      clause: 'a header that cannot be sent is refused by name',
      in: 'ai/addHeader',
      swap: ['|| badValue.test(text)', ''],
    },
  ],
  'UPP-018': [
    {
      clause: 'the key is sent beside them',
      in: 'ai/requestHeaders',
      swap: ['key === undefined ?', 'key === undefined || config.headers ?'],
    },
    {
      clause: 'the headers of the request are sent beside them',
      in: 'ai/requestHeaders',
      swap: ['auth, request, config.headers ?? {}]', 'auth, config.headers ?? request]'],
    },
  ],
  'UPP-019': [
    {
      clause: 'the custom header wins',
      in: 'ai/requestHeaders',
      swap: [
        '[endpoint.headers, auth, request, config.headers ?? {}]',
        '[config.headers ?? {}, endpoint.headers, auth, request]',
      ],
    },
    {
      clause: 'whatever the case of its name',
      in: 'ai/addHeader',
      swap: ['headers[name.toLowerCase()] = text', 'headers[name] = text'],
    },
    {
      clause: 'a custom authorization needs no key',
      in: 'ai/resolveKey',
      swap: ['names.includes(name.toLowerCase())', 'names.includes(name)'],
    },
  ],
  'UPP-020': [
    {
      clause: 'getKey may answer later',
      in: 'ai/askForKey',
      swap: ['await ask()', 'ask()'],
    },
    {
      clause: 'getKey may answer at once',
      in: 'ai/askForKey',
      swap: ['await ask()', 'await (ask() as Promise<string>).then((key) => key)'],
    },
    {
      clause: 'the time limit ends its wait',
      in: 'ai/Attempt.prepare',
      swap: ['await untilAborted(signal, key)', 'await key'],
    },
  ],
  'UPP-021': [
    {
      clause: 'the keys follow each other in order',
      in: 'ai/RoundRobinKeys.getKey',
      swap: ['this.#next + 1', 'this.#next + 2'],
    },
    {
      clause: 'after the last comes the first',
      in: 'ai/RoundRobinKeys.getKey',
      swap: [
        '(this.#next + 1) % this.#keys.length',
        'Math.min(this.#next + 1, this.#keys.length - 1)',
      ],
    },
    {
      clause: 'the list is copied',
      in: 'ai/RoundRobinKeys.constructor',
      swap: ['[...keys]', 'keys'],
    },
    {
      clause: 'an empty list is refused',
      in: 'ai/RoundRobinKeys.constructor',
      swap: ['|| keys.length === 0', ''],
    },
  ],
  'UPP-022': [
    {
      clause: 'the weights decide',
      in: 'ai/WeightedKeys.getKey',
      swap: ['rest -= weight', 'rest -= this.#total / this.#entries.length + 0 * weight'],
    },
    {
      clause: 'the choice is random',
      in: 'ai/WeightedKeys.getKey',
      swap: ['this.#random() * this.#total', '0'],
    },
    {
      clause: 'a weight of zero is never chosen',
      in: 'ai/WeightedKeys.constructor',
      swap: [
        'entries.filter(({ weight }) => weight > 0)',
        'entries.map(({ key, weight }) => ({ key, weight: weight || 1 }))',
      ],
    },
    {
      clause: 'a negative weight is refused',
      in: 'ai/WeightedKeys.constructor',
      swap: ['weight >= 0 &&', ''],
    },
  ],
  'UPP-023': [
    {
      clause: 'the function is asked for each attempt',
      in: 'ai/DynamicKey.getKey',
      swap: [
        'return this.#ask()',
        'return ((this as { key?: string | Promise<string> }).key ??= this.#ask())',
      ],
    },
    {
      clause: 'something else than a function is refused',
      in: 'ai/DynamicKey.constructor',
      swap: ["typeof ask !== 'function'", 'ask === undefined'],
    },
  ],
  'UPP-024': [
    {
      clause: 'attempts count from 1',
      in: 'ai/VendorRun.delay',
      swap: ['onRetry(failure, this.#failures)', 'onRetry(failure, this.#failures - 1)'],
    },
    {
      clause: 'the delay is waited',
      in: 'ai/VendorRun.recover',
      swap: ['sleep(delay, signal)', 'sleep(0, signal)'],
    },
    {
      clause: 'null ends it',
      in: 'ai/VendorRun.delay',
      swap: ['Math.max(0, delay) : null', 'Math.max(0, delay) : this.#failures < 6 ? 0 : null'],
    },
    {
      clause: 'the delay may be a promise',
      in: 'ai/VendorRun.delay',
      swap: [
        'Promise.resolve(this.#strategy.onRetry(failure, this.#failures))',
        'Promise.resolve([this.#strategy.onRetry(failure, this.#failures)]).then(([ms]) => (typeof ms === "number" ? ms : null))',
      ],
    },
  ],
  'UPP-025': [
    {
      clause: 'beforeRequest delays',
      in: 'ai/VendorRun.waitBefore',
      swap: ['if (ms > 0)', 'if (ms < 0)'],
    },
    {
      clause: 'each attempt',
      in: 'ai/VendorRun.open',
      swap: [
        'if (this.#strategy.beforeRequest)',
        'if (this.#strategy.beforeRequest && this.#failures === 0)',
      ],
    },
    {
      clause: 'reset follows a success',
      in: 'ai/VendorRun.next',
      swap: ['this.#strategy.reset?.()', ''],
    },
    {
      clause: 'and a success only',
      in: 'ai/VendorRun.recover',
      swap: ['this.#endAttempt()', 'this.#endAttempt()\n    this.#strategy.reset?.()'],
    },
  ],
  'UPP-026': [
    {
      clause: 'delays double',
      in: 'ai/judgeRetry',
      swap: ['2 ** Math.min(requestsMade - 1, 30)', 'requestsMade'],
    },
    {
      clause: 'with jitter',
      in: 'ai/judgeRetry',
      swap: ['ceiling * (0.5 + random() / 2)', 'ceiling'],
    },
    {
      clause: 'jitter takes at most half away',
      in: 'ai/judgeRetry',
      swap: ['ceiling * (0.5 + random() / 2)', 'ceiling * random()'],
    },
    {
      clause: 'up to a maximum',
      in: 'ai/judgeRetry',
      swap: ['Math.min(maxDelayMs, baseDelayMs * 2', 'Math.max(0, baseDelayMs * 2'],
    },
  ],
  'UPP-027': [
    {
      clause: 'the delay does not grow',
      in: 'ai/LinearBackoff.constructor',
      swap: ['maxDelayMs: delayMs', 'maxDelayMs: 8000'],
    },
    {
      clause: 'the delay is exact',
      in: 'ai/LinearBackoff.constructor',
      swap: ['jitter: false', 'jitter: true'],
    },
    {
      clause: 'maxRetries is the number of retries',
      in: 'ai/LinearBackoff.constructor',
      swap: ["'maxRetries', maxRetries) + 1", "'maxRetries', maxRetries)"],
    },
  ],
  'UPP-028': [
    {
      clause: 'one request only',
      in: 'ai/NoRetry.onRetry',
      swap: [
        'onRetry(): null {\n    return null',
        'onRetry(_error?: unknown, attempt = 1): number | null {\n    return attempt < 2 ? 0 : null',
      ],
    },
  ],
  'UPP-029': [
    {
      clause: 'a failure that is not retryable is not retried',
      in: 'ai/VendorRun.recover',
      swap: ['!isRetryable(failure)', '(!isRetryable(failure) && this.#failures > 1)'],
    },
    {
      clause: 'a stream is not retried after its first event',
      in: 'ai/VendorRun.recover',
      swap: ['this.#delivered ||', '(this.#delivered && this.#failures > 1) ||'],
    },
    {
      clause: 'an abort ends the wait',
      in: 'ai/VendorRun.abortable',
      swap: ["signal.addEventListener('abort', onAbort, { once: true })", ''],
      by: 'upp/retry',
    },
    {
      clause: 'a retryable failure is retried',
      in: 'ai/transient',
      swap: ['ErrorCode.RateLimited,', ''],
    },
  ],
  'UPP-030': [
    {
      clause: 'an error of a provider becomes a UPPError',
      in: 'ai/toUPPError',
      swap: [
        'if (isUPPError(error)) return error',
        'if (error instanceof Error) return error as UPPError',
      ],
    },
    {
      clause: 'an error of the network becomes a UPPError with its code',
      in: 'ai/Attempt.errorOf',
      swap: [': networkError(error, this.#context, this.#url)', ': (error as UPPError)'],
    },
    {
      clause: 'a message of wrong content is refused with a UPPError',
      in: 'ai/contract/message/listOf',
      swap: ['throw invalidValue(', 'throw new TypeError('],
    },
    {
      clause: 'so is data that is no base64',
      in: 'ai/base64Bytes',
      swap: ['throw invalidValue(', 'throw new TypeError('],
    },
  ],
  'UPP-031': [
    {
      clause: 'statusCode',
      in: 'ai/httpError',
      swap: ['statusCode: status,\n    vendorCode', 'vendorCode'],
    },
    {
      clause: 'message',
      in: 'ai/transport/http-error/messageOf',
      swap: ['if (!isBody) return said', ''],
    },
    {
      clause: 'cause',
      in: 'ai/UPPError.constructor',
      swap: ['{ code, hint, cause }', '{ code, hint }'],
    },
    {
      clause: 'no cause where there is none',
      in: 'ai/UPPError.constructor',
      swap: [
        'cause === undefined ? { code, hint } : { code, hint, cause }',
        '{ code, hint, cause: cause ?? message }',
      ],
    },
  ],
  'UPP-032': [
    {
      clause: 'each of the twelve exists',
      in: 'ai/ErrorCode',
      swap: ["ContentFiltered: 'CONTENT_FILTERED',", ''],
    },
    {
      clause: 'and no other',
      in: 'ai/ErrorCode',
      swap: ["Timeout: 'TIMEOUT',", "Timeout: 'TIMEOUT',\n  Overloaded: 'OVERLOADED',"],
    },
  ],
  'UPP-033': [
    {
      clause: '401 and 403 are AUTHENTICATION_FAILED',
      in: 'ai/codeForStatus',
      swap: ['status === 401 || status === 403', 'status === 401'],
    },
    {
      clause: '404 is MODEL_NOT_FOUND',
      in: 'ai/codeForStatus',
      swap: ['if (status === 404) return ErrorCode.ModelNotFound', ''],
    },
    {
      clause: '429 is RATE_LIMITED',
      in: 'ai/codeForStatus',
      swap: ['if (status === 429) return ErrorCode.RateLimited', ''],
    },
    {
      clause: 'every 5xx is PROVIDER_ERROR',
      in: 'ai/codeForStatus',
      swap: ['if (status >= 500)', 'if (status === 500)'],
    },
  ],
  'UPP-034': [
    {
      clause: 'the modality is in errors of the transport',
      in: 'ai/contextOf',
      swap: [
        '{ provider: endpoint.name, modality }',
        "{ provider: endpoint.name, modality: 'llm' }",
      ],
    },
    {
      clause: 'the provider is in errors of the transport',
      in: 'ai/contextOf',
      swap: ['{ provider: endpoint.name, modality }', "{ provider: 'skein', modality }"],
    },
    {
      clause: 'the modality is in errors of the core',
      in: 'ai/toUPPError',
      swap: ['provider,\n    modality,\n', "provider,\n    modality: 'llm',\n"],
    },
  ],
  'UPP-035': [
    {
      clause: 'the error of the network is kept',
      in: 'ai/networkError',
      swap: [
        'code: ErrorCode.NetworkError,\n    ...context,\n    cause: error,',
        'code: ErrorCode.NetworkError,\n    ...context,',
      ],
    },
    {
      clause: 'the error of the parser is kept',
      in: 'ai/JsonReader.next',
      swap: ['cause: error,', ''],
    },
    {
      clause: 'the reason of an abort is kept',
      in: 'ai/cancelledError',
      swap: ['cause: signal.reason,', ''],
    },
  ],
  'UPP-036': [
    {
      clause: 'NETWORK_ERROR on a failure of the connection',
      in: 'ai/networkError',
      swap: ['ErrorCode.NetworkError', 'ErrorCode.ProviderError'],
    },
    {
      clause: 'TIMEOUT on a timeout',
      in: 'ai/Attempt.constructor',
      swap: ['ErrorCode.Timeout', 'ErrorCode.NetworkError'],
    },
    {
      clause: 'CANCELLED on an abort',
      in: 'ai/cancelledError',
      swap: ['ErrorCode.Cancelled', 'ErrorCode.ProviderError'],
    },
    {
      clause: 'INVALID_RESPONSE on a malformed body',
      in: 'ai/JsonReader.next',
      swap: ['code: ErrorCode.InvalidResponse', 'code: ErrorCode.ProviderError'],
    },
    {
      clause: 'CONTEXT_LENGTH_EXCEEDED of OpenAI',
      in: 'ai/wires/openai-error/codes',
      swap: ["'context_length_exceeded context_window", "'context_window"],
    },
    {
      clause: 'QUOTA_EXCEEDED of OpenAI',
      in: 'ai/wires/openai-error/codes',
      swap: ['`insufficient_quota ', '`'],
    },
    {
      clause: 'CONTEXT_LENGTH_EXCEEDED of Anthropic',
      in: 'ai/wires/anthropic-messages/error/codeOf',
      swap: ['prompt is too long|', ''],
    },
    {
      clause: 'CONTEXT_LENGTH_EXCEEDED of Google',
      in: 'ai/wires/google-generate/error/codeOf',
      swap: [
        "if (status === 'INVALID_ARGUMENT' && isTooLong)",
        'if (status === undefined && isTooLong)',
      ],
    },
  ],
  'UPP-037': [
    {
      clause: 'nothing is logged',
      in: 'ai/Attempt.prepare',
      swap: ['this.#headers = headers', 'this.#headers = headers\n    console.debug(headers)'],
    },
    {
      clause: 'the logging middleware cleans what it prints',
      in: 'ai/loggingMiddleware',
      swap: ["typeof value === 'string' ? redactConfig(value, config) : value", 'value'],
    },
    {
      clause: 'also in the line itself',
      in: 'ai/loggingMiddleware',
      swap: [
        'redactConfig(`[${modality}] ${provider}/${modelId} ${what}`, config)',
        '`[${modality}] ${provider}/${modelId} ${what}`',
      ],
    },
  ],
  'UPP-038': [
    {
      clause: 'not in errors',
      in: 'ai/Attempt.errorOf',
      swap: ['return redactUPPError(typed, secrets, facts)', 'return typed'],
    },
    {
      clause: 'not in their body',
      in: 'ai/redactUPPError',
      swap: ['body: clean(error.body)', 'body: error.body'],
    },
    {
      clause: 'not in their cause',
      in: 'ai/redactCause',
      swap: ['if (!holdsSecret(cause, secrets)) return cause', 'if (cause !== null) return cause'],
    },
    {
      clause: 'not in the address',
      in: 'ai/Attempt.prepare',
      swap: [
        'return { url: this.#url,',
        'return { url: `${this.#url}${this.#url.includes("?") ? "&" : "?"}key=${encodeURIComponent(this.key ?? "")}`,',
      ],
    },
    {
      clause: 'nor those of earlier attempts',
      in: 'ai/VendorRun.recover',
      swap: ['[...this.#secrets, ...(attempt?.secrets ?? [])]', '[...(attempt?.secrets ?? [])]'],
    },
  ],
  'UPP-039': [
    {
      clause: 'modelId',
      in: 'ai/createProvider',
      swap: [
        'Object.freeze({ modelId, provider,',
        'Object.freeze({ modelId: modelId.toUpperCase(), provider,',
      ],
    },
    {
      clause: 'and nothing else',
      in: 'ai/createProvider',
      swap: [
        'Object.freeze({ modelId, provider,',
        'Object.freeze({ modelId, provider, modality: undefined ?? "llm",',
      ],
    },
  ],
  'UPP-040': [
    {
      clause: 'llm checks the provider',
      in: 'ai/bindModel',
      swap: [
        'const handler = provider.handlers.llm',
        'const handler = provider.handlers.llm ?? { bind: () => ({ capabilities: {} }) as BoundLLMModel }',
      ],
    },
    {
      clause: 'embedding checks the provider',
      in: 'ai/Embedder.constructor',
      swap: [
        'const handler = provider?.handlers?.embedding',
        'const handler = provider?.handlers?.embedding ?? ({ bind: () => ({}) } as EmbeddingHandler)',
      ],
    },
    {
      clause: 'image checks the provider',
      in: 'ai/ImageMaker.constructor',
      swap: [
        'const handler = provider?.handlers?.image',
        'const handler = provider?.handlers?.image ?? ({ bind: () => ({}) } as ImageHandler)',
      ],
    },
  ],
  'UPP-041': [
    {
      clause: 'the code is INVALID_REQUEST',
      in: 'ai/contract/error/invalidRequest',
      swap: ['ErrorCode.InvalidRequest', 'ErrorCode.ProviderError'],
    },
    {
      clause: 'the error of embedding has its modality',
      in: 'ai/Embedder.constructor',
      swap: ["modality: 'embedding'", "modality: 'llm'"],
    },
    {
      clause: 'the error of image has its modality',
      in: 'ai/ImageMaker.constructor',
      swap: ["modality: 'image'", "modality: 'llm'"],
    },
    {
      clause: 'the error of llm names the provider',
      in: 'ai/bindModel',
      swap: [
        "{ provider: provider.name, modality: 'llm' }",
        "{ provider: 'skein', modality: 'llm' }",
      ],
    },
  ],
  'UPP-042': [
    {
      clause: 'generate gives a promise of the turn',
      in: 'ai/LLM.generate',
      swap: [
        'if (step.done) return step.value',
        'if (step.done) return step.value.response as never',
      ],
    },
    {
      clause: 'model is the bound model',
      in: 'ai/LLM.constructor',
      swap: [
        'this.#options = options',
        'this.#options = options\n    this.model = { ...this.model, modelId: "" }',
      ],
    },
    {
      clause: 'capabilities are those of the model',
      in: 'ai/LLM.constructor',
      swap: [
        '? this.model.capabilities',
        '? Object.freeze({ ...this.model.capabilities, audioInput: false })',
      ],
    },
  ],
  'UPP-043': [
    {
      clause: 'config',
      in: 'ai/LLM.constructor',
      swap: ['protectConfig(options.config)', 'protectConfig()'],
    },
    {
      clause: 'system',
      in: 'ai/LLM.constructor',
      swap: ['...(system !== undefined && { system }),', ''],
    },
    {
      clause: 'tools',
      in: 'ai/LLM.constructor',
      swap: ['(options.tools ?? []).map(', '(options.tools ?? []).slice(1).map('],
    },
    {
      clause: 'toolStrategy',
      in: 'ai/LLM.run',
      swap: ['strategy ?? this.#options.toolStrategy ?? {}', 'strategy ?? {}'],
    },
    {
      clause: 'structure',
      in: 'ai/LLM.constructor',
      swap: ['...(structure && { structure: toStructure(structure, this.#origin) }),', ''],
    },
  ],
  'UPP-044': [
    {
      clause: 'middleware is used',
      in: 'ai/LLM.run',
      swap: ['this.#options.middleware ?? []', '[]'],
    },
  ],
  'UPP-045': [
    {
      clause: 'a string is taken as it is',
      in: 'ai/toInputs',
      swap: ['text: input }', 'text: input.trim() }'],
    },
    {
      clause: 'a message is taken as it is',
      in: 'ai/toInputs',
      swap: [
        'messages.push(toMessage(input, sources))',
        'messages.push(new UserMessage((input as UserMessage).content, sources))',
      ],
    },
    {
      clause: 'a block may be the input',
      in: 'ai/toInputs',
      swap: ['else if (isBlock(input)) blocks.push(input)', ''],
    },
  ],
  'UPP-046': [
    {
      clause: 'mixed kinds keep their order',
      in: 'ai/toInputs',
      swap: ['flush()\n      messages.push', 'messages.push'],
    },
    {
      clause: 'so do blocks',
      in: 'ai/toInputs',
      swap: [
        'else if (isBlock(input)) blocks.push(input)',
        'else if (isBlock(input)) blocks.unshift(input)',
      ],
    },
  ],
  'UPP-047': [
    {
      clause: 'the history comes first',
      in: 'ai/toMessages',
      swap: ['[...history, ...inputs]', '[...inputs, ...history]'],
    },
    {
      clause: 'the history is not changed',
      in: 'ai/toMessages',
      swap: [
        'return { messages, inputs }',
        'if (Array.isArray(first)) first.push(...inputs)\n  return { messages, inputs }',
      ],
    },
  ],
  'UPP-048': [
    {
      clause: 'a thread is accepted',
      in: 'ai/historyOf',
      swap: ["'messages' in value", "Object.hasOwn(value, 'messages')"],
    },
    {
      clause: 'the thread is not changed',
      in: 'ai/toMessages',
      swap: [
        'return { messages, inputs }',
        'if (past) (first as { push?: (...all: Message[]) => void }).push?.(...inputs)\n  return { messages, inputs }',
      ],
    },
  ],
  'UPP-049': [
    {
      clause: 'stream takes several inputs',
      in: 'ai/LLM.stream',
      swap: ['this.#tryRun(given,', 'this.#tryRun(given.slice(0, 1),'],
    },
    {
      clause: 'stream takes a list as history',
      in: 'ai/LLM.stream',
      swap: ['this.#tryRun(given,', 'this.#tryRun(given.filter((one) => !Array.isArray(one)),'],
    },
    {
      clause: 'stream takes a thread as history',
      in: 'ai/LLM.stream',
      swap: [
        'this.#tryRun(given,',
        "this.#tryRun(given.filter((one) => typeof one !== 'object' || !('messages' in one)),",
      ],
    },
  ],
  'UPP-050': [
    {
      clause: 'they are what the API can do',
      in: 'ai/HttpModel.constructor',
      swap: [
        'Object.freeze({ ...capabilities })',
        'Object.freeze({ ...capabilities, audioInput: true })',
      ],
    },
    {
      clause: 'there are seven',
      in: 'ai/LLM.constructor',
      swap: [
        '? this.model.capabilities',
        '? Object.freeze({ ...this.model.capabilities, reasoning: true })',
      ],
    },
    {
      clause: 'those of a vendor are those of its documentation',
      in: 'ai/src/vendors/anthropic.ts',
      swap: ['documentInput: true', 'documentInput: false'],
    },
  ],
  'UPP-051': [
    {
      clause: 'they are frozen',
      in: 'ai/LLM.constructor',
      swap: ['Object.freeze({ ...this.model.capabilities })', '{ ...this.model.capabilities }'],
    },
    {
      clause: 'those of a vendor are frozen',
      in: 'ai/LLM.constructor',
      swap: ['? this.model.capabilities', '? { ...this.model.capabilities }'],
    },
    {
      clause: 'they are about the API, not the model',
      in: 'ai/HttpModel.constructor',
      swap: [
        '{ ...capabilities }',
        "{ ...capabilities, tools: modelId !== 'm' && capabilities.tools }",
      ],
    },
  ],
  'UPP-052': [
    {
      clause: 'the core loops',
      in: 'ai/runTurn',
      swap: ['if (!goesOn) answer', 'if (!goesOn || draft.rounds > 0) answer'],
    },
    {
      clause: 'a provider gets one request per exchange',
      in: 'ai/Call.open',
      swap: [
        'return this.#source(request)[Symbol.asyncIterator]()',
        'void this.#source(request)[Symbol.asyncIterator]().next()\n    return this.#source(request)[Symbol.asyncIterator]()',
      ],
    },
  ],
  'UPP-053': [
    {
      clause: 'the input is converted to a user message',
      in: 'ai/toInputs',
      swap: ['if (blocks.length > 0)', 'if (blocks.length > 1)'],
    },
    {
      clause: 'the input is appended',
      in: 'ai/toMessages',
      swap: ['[...history, ...inputs]', '[...inputs, ...history]'],
    },
  ],
  'UPP-054': [
    {
      clause: 'calls run in parallel',
      in: 'ai/Execution.constructor',
      swap: ["mode = 'parallel'", "mode = 'sequential'"],
    },
    {
      clause: 'all of them',
      in: 'ai/Execution.constructor',
      swap: ['strategy?.maxConcurrency ?? Infinity', 'strategy?.maxConcurrency ?? 2'],
    },
  ],
  'UPP-055': [
    {
      clause: 'the assistant message is appended',
      in: 'ai/TurnDraft.addResponse',
      swap: [
        'this.produced.push(message)',
        'if (!message.hasToolCalls) this.produced.push(message)',
      ],
    },
    {
      clause: 'the results are appended',
      in: 'ai/TurnDraft.endTools',
      swap: ['if (answered.length > 0)', 'if (answered.length > 1)'],
    },
    {
      clause: 'those of earlier rounds stay',
      in: 'ai/Call.request',
      swap: ['concat(this.draft.produced)', 'concat(this.draft.produced.slice(-2))'],
    },
  ],
  'UPP-056': [
    {
      clause: 'the loop stops at the limit',
      in: 'ai/Call.isAtLimit',
      swap: ['this.draft.rounds < limit', 'this.draft.rounds <= limit'],
    },
    {
      clause: 'it does not throw',
      in: 'ai/Call.isAtLimit',
      swap: [
        'strategy.onMaxIterations?.(this.draft.rounds),',
        "{\n      void strategy.onMaxIterations?.(this.draft.rounds)\n      throw new Error('the limit')\n    },",
      ],
    },
    {
      clause: 'the turn says which calls are open',
      in: 'ai/TurnDraft.build',
      swap: ['openCalls: this.#openCalls', 'openCalls: []'],
    },
    {
      clause: 'a limit of 0 hands the calls to the caller',
      in: 'ai/Call.isAtLimit',
      swap: [
        'strategy.maxIterations ?? DEFAULT_ITERATIONS',
        'strategy.maxIterations || DEFAULT_ITERATIONS',
      ],
    },
  ],
  'UPP-057': [
    {
      clause: 'Chat Completions: images',
      in: 'ai/wires/openai-chat/request/encodePart',
      swap: ["type: 'image_url', image_url,", "type: 'image', image_url,"],
    },
    {
      clause: 'Responses: text',
      in: 'ai/wires/openai-responses/request/encodePart',
      swap: ["type: 'input_text'", "type: 'text'"],
    },
    {
      clause: 'Anthropic: tools',
      in: 'ai/wires/anthropic-messages/request/encodeRequest',
      swap: ['input_schema: parameters', 'parameters: parameters'],
    },
    {
      clause: 'Google: structure',
      in: 'ai/wires/google-generate/request/encodeRequest',
      swap: ["responseMimeType: 'application/json',", ''],
    },
    {
      clause: 'Ollama: tool results',
      in: 'ai/wires/ollama-chat/request/encodeResult',
      swap: ["role: 'tool'", "role: 'user'"],
    },
  ],
  'UPP-058': [
    {
      clause: 'Anthropic: calls',
      in: 'ai/wires/anthropic-messages/stream/blockKinds',
      swap: ["['tool_use', 'tool_call'],", ''],
    },
    {
      clause: 'Chat Completions: parallel calls',
      in: 'ai/ChatDecoder.readField',
      swap: ['delta.tool_calls ?? []', 'delta.tool_calls?.slice(0, 1) ?? []'],
    },
    {
      clause: 'Chat Completions: refusals',
      in: 'ai/ChatDecoder.readField',
      swap: ["if (value !== '') this.#refusal(String(value), events)", ''],
    },
    {
      clause: 'Ollama: text',
      in: 'ai/src/wires/ollama-chat/stream.ts',
      swap: ["this.#text('text', content, events)", "this.#text('reasoning', content, events)"],
    },
    {
      clause: 'Google: an answer without content',
      in: 'ai/wires/google-generate/stream/firstCandidate',
      swap: [
        "if (candidate && (candidate['index'] ?? 0) === 0) return candidate",
        "if (objectOf(candidate?.['content'])?.['parts']) return candidate",
      ],
    },
  ],
  'UPP-059': [
    {
      clause: 'Chat Completions: a message of its own role',
      in: 'ai/wires/openai-chat/request/encodeMessages',
      swap: ['role: target.dialect.systemRole', "role: 'user'"],
    },
    {
      clause: 'Responses: instructions',
      in: 'ai/wires/openai-responses/request/encodeRequest',
      swap: ['instructions: system || undefined', 'system: system || undefined'],
    },
    {
      clause: 'Anthropic: system',
      in: 'ai/wires/anthropic-messages/request/encodeRequest',
      swap: ["fields['system'] =", "fields['instructions'] ="],
    },
    {
      clause: 'Google: systemInstruction',
      in: 'ai/wires/google-generate/request/encodeRequest',
      swap: ["fields['systemInstruction'] =", "fields['system'] ="],
    },
    {
      clause: 'Ollama: the first message',
      in: 'ai/wires/ollama-chat/request/encodeMessages',
      swap: ["role: 'system'", "role: 'user'"],
    },
  ],
  'UPP-060': [
    {
      clause: 'the code of the vendor decides',
      in: 'ai/httpError',
      swap: ['vendor?.code ?? codeForStatus(status)', 'codeForStatus(status)'],
    },
    {
      clause: 'the words of the vendor are kept',
      in: 'ai/transport/http-error/messageOf',
      swap: ['if (!isBody) return said', ''],
    },
    {
      clause: 'an error inside a stream is one',
      in: 'ai/AnthropicDecoder.decode',
      swap: [
        "throw vendorFailure(this.#provider, readError(event) ?? { message: 'The stream failed.' })",
        'return this.#stopMessage()',
      ],
    },
    {
      clause: 'an error with HTTP 200 is one',
      in: 'ai/JsonReader.next',
      swap: ['throw told ?? asUPPError(error, context)', 'throw asUPPError(error, context)'],
    },
  ],
  'UPP-061': [
    {
      clause: 'Anthropic',
      in: 'ai/AnthropicDecoder.stopMessage',
      swap: ['[this.#provider]: {', 'vendor: {'],
    },
    {
      clause: 'Chat Completions',
      in: 'ai/ChatDecoder.finish',
      swap: ['{ [this.#provider]: this.#metadata() }', 'this.#metadata() as never'],
    },
    {
      clause: 'the data of a block, too',
      in: 'ai/withNative',
      swap: ['{ [provider]: { api, native, ...extra } }', '{ [api]: { api, native, ...extra } }'],
    },
  ],
  'UPP-062': [
    {
      clause: 'unknown fields come back',
      in: 'ai/wires/anthropic-messages/request/extras',
      swap: ['return rest', 'return {}'],
    },
    {
      clause: 'they survive JSON',
      in: 'ai/contract/message-json/calls',
      swap: [
        'return call as unknown as ToolCall',
        'return { ...call, metadata: undefined } as unknown as ToolCall',
      ],
    },
    {
      clause: 'what is of others is not sent',
      in: 'ai/wires/metadata/optionsOf',
      swap: ['metadata?.[provider]', 'Object.values(metadata ?? {})[0]'],
    },
  ],
  'UPP-063': [
    {
      clause: 'ids are unique',
      in: 'ai/BaseMessage.constructor',
      swap: ['id ?? ids()', 'id ?? ids().slice(0, 3)'],
    },
    {
      clause: 'timestamp is the time now',
      in: 'ai/BaseMessage.constructor',
      swap: ['new Date(clock.now())', 'new Date(0)'],
    },
    {
      clause: 'metadata is optional',
      in: 'ai/BaseMessage.constructor',
      swap: [
        'if (metadata) this.metadata = freezeTree(metadata)',
        'this.metadata = freezeTree(metadata ?? {})',
      ],
    },
    {
      clause: 'type',
      in: 'ai/AssistantMessage.type',
      swap: ["'assistant'", "'model' as 'assistant'"],
    },
  ],
  'UPP-064': [
    {
      clause: 'text blocks are joined without a separator',
      in: 'ai/BaseMessage.text',
      swap: ['text += block.text', "text += (text && '\\n') + block.text"],
    },
    {
      clause: 'only text blocks',
      in: 'ai/BaseMessage.text',
      swap: ["if (block.type === 'text')", "if ('text' in block)"],
    },
    {
      clause: 'so are those of a tool result',
      in: 'ai/ToolResultMessage.text',
      swap: [".join('')", ".join(' ')"],
    },
  ],
  'UPP-065': [
    {
      clause: 'images',
      in: 'ai/BaseMessage.images',
      swap: ["block.type === 'image')", "block.type === 'image').slice(0, 1)"],
    },
    {
      clause: 'documents',
      in: 'ai/BaseMessage.documents',
      swap: [
        "block.type === 'document'",
        "block.type === 'document' && block.source.type !== 'text'",
      ],
    },
    {
      clause: 'audio',
      in: 'ai/BaseMessage.audio',
      swap: ["block.type === 'audio'", "block.type === ('video' as 'audio')"],
    },
    {
      clause: 'video, of tool results too',
      in: 'ai/resultBlocks',
      swap: [", 'video'", ''],
    },
  ],
  'UPP-066': [
    {
      clause: 'all six kinds',
      in: 'ai/contract/message/userBlocks',
      swap: ['binary: true,', ''],
    },
    {
      clause: 'a string is one text block, as it is',
      in: 'ai/toBlocks',
      swap: ['text: content }]', 'text: content.trim() }]'],
    },
    {
      clause: 'no other kind',
      in: 'ai/contract/message/userBlocks',
      swap: ['binary: true,', 'binary: true,\n  reasoning: true,'],
    },
  ],
  'UPP-067': [
    {
      clause: 'the five kinds',
      in: 'ai/contract/message/assistantBlocks',
      swap: ['video: true,', ''],
    },
    {
      clause: 'hasToolCalls is false for an empty list',
      in: 'ai/AssistantMessage.hasToolCalls',
      swap: ['this.toolCalls.length > 0', 'this.toolCalls.length >= 0'],
    },
    {
      clause: 'toolCalls holds the calls',
      in: 'ai/AssistantMessage.constructor',
      swap: [
        "listOf(toolCalls, 'the calls of an AssistantMessage')",
        'toolCalls.map(({ toolCallId, toolName }) => ({ toolCallId, toolName, arguments: {} }))',
      ],
    },
  ],
  'UPP-068': [
    {
      clause: 'the results are in order',
      in: 'ai/ToolResultMessage.constructor',
      swap: [
        "listOf(results, 'a ToolResultMessage')",
        "listOf(results, 'a ToolResultMessage').toReversed()",
      ],
    },
    {
      clause: 'the results are whole',
      in: 'ai/ToolResultMessage.constructor',
      swap: [
        "listOf(results, 'a ToolResultMessage')",
        'results.map(({ toolCallId, result }) => ({ toolCallId, result }))',
      ],
    },
  ],
  'UPP-069': [
    {
      clause: 'the fields of a block',
      in: 'ai/AudioBlock',
      swap: ['readonly mimeType: string', 'readonly mimeType?: string'],
      by: 'test-d',
    },
    {
      clause: 'a document has a title',
      in: 'ai/DocumentBlock',
      swap: ['readonly title?: string', 'readonly name?: string'],
      by: 'test-d',
    },
    {
      clause: 'there are seven',
      in: 'ai/ContentBlockType',
      swap: ["Document: 'document',", ''],
      by: 'messages.test.ts',
    },
    {
      clause: 'helpers make blocks with these fields',
      in: 'ai/Document.toBlock',
      swap: ['return { type, source, mimeType, title }', 'return { type, source, mimeType }'],
      by: 'messages.test.ts',
    },
  ],
  'UPP-070': [
    {
      clause: 'refused at run time',
      in: 'ai/contract/message/assistantBlocks',
      swap: ['video: true,', 'video: true,\n  binary: true,'],
      by: 'messages.test.ts',
    },
    {
      clause: 'refused by type',
      in: 'ai/AssistantContent',
      swap: ['| ImageBlock', '| BinaryBlock | ImageBlock'],
      by: 'test-d',
    },
  ],
  'UPP-071': [
    {
      clause: 'an image as bytes',
      in: 'ai/imageSource',
      swap: ['encodeBase64(source.data)', 'String(source.data)'],
    },
    {
      clause: 'an image by address',
      in: 'ai/imageUrl',
      swap: [
        "source.type === 'url' ? source.url :",
        "source.type === 'url' ? toDataUrl(mimeType, source.url) :",
      ],
    },
    {
      clause: 'a document as text',
      in: 'ai/documentSource',
      swap: ['{ text: source.data, mimeType }', '{ base64: source.data, mimeType }'],
    },
    {
      clause: 'a document as base64',
      in: 'ai/documentSource',
      swap: [
        "if (source.type === 'base64') return { base64: source.data, mimeType }",
        "if (source.type === 'base64') return { base64: encodeBase64(new TextEncoder().encode(source.data)), mimeType }",
      ],
    },
    {
      clause: 'a document by address',
      in: 'ai/addressed',
      swap: [': { url, mimeType }', ": { url: url.replace('https', 'http'), mimeType }"],
    },
  ],
  'UPP-072': [
    {
      clause: 'fromBytes tells the type from the bytes',
      in: 'ai/Image.fromBytes',
      swap: ["checkedType(data, 'image', { mimeType })", "mimeType ?? 'image/png'"],
    },
    {
      clause: 'fromPath reads the file',
      in: 'ai/Image.fromPath',
      swap: ["{ type: 'bytes', data }", "{ type: 'url', url: path }"],
    },
    {
      clause: 'fromUrl keeps the address',
      in: 'ai/Image.fromUrl',
      swap: ['url: checkedUrl(url) }', 'url: new URL(url).origin }'],
    },
    {
      clause: 'fromBase64 keeps the data',
      in: 'ai/Image.fromBase64',
      swap: ['data: strictBase64(base64) }', "data: '' }"],
    },
    {
      clause: 'fromBlock keeps the type',
      in: 'ai/Image.fromBlock',
      swap: ['new Image(source, mimeType, metadata)', "new Image(source, 'image/*', metadata)"],
    },
  ],
  'UPP-073': [
    {
      clause: 'fromPath with a title',
      in: 'ai/Document.fromPath',
      swap: ['textOf(bytes, path) }, type, title)', 'textOf(bytes, path) }, type)'],
    },
    {
      clause: 'fromUrl with a title',
      in: 'ai/Document.fromUrl',
      swap: ['type, title)', 'type)'],
    },
    {
      clause: 'fromBase64 with a title and its data',
      in: 'ai/Document.fromBase64',
      swap: ['data: strictBase64(base64) }', "data: '' }"],
    },
    {
      clause: 'fromText',
      in: 'ai/Document.fromText',
      swap: ["'text/plain', title", "'text/markdown', title"],
    },
  ],
  'UPP-074': [
    {
      clause: 'fromPath',
      in: 'ai/Audio.fromPath',
      swap: ["new Audio('audio',", "new Audio('video' as 'audio',"],
    },
    {
      clause: 'fromBytes keeps the type that was given',
      in: 'ai/Audio.fromBytes',
      swap: ['{ mimeType }', "{ mimeType: mimeType && 'audio/mpeg' }"],
    },
    {
      clause: 'fromBase64 keeps the type that was given',
      in: 'ai/Audio.fromBase64',
      swap: ['base64Bytes(base64), mimeType)', 'base64Bytes(base64))'],
    },
  ],
  'UPP-075': [
    {
      clause: 'fromPath',
      in: 'ai/Video.fromPath',
      swap: ["new Video('video',", "new Video('audio' as 'video',"],
    },
    {
      clause: 'fromBytes',
      in: 'ai/Video.fromBytes',
      swap: ["new Video('video', data,", "new Video('video', data.slice(1),"],
    },
    {
      clause: 'fromBase64 keeps the type that was given',
      in: 'ai/Video.fromBase64',
      swap: ['base64Bytes(base64), mimeType)', 'base64Bytes(base64))'],
    },
  ],
  'UPP-076': [
    {
      clause: 'isUserMessage takes parsed JSON',
      in: 'ai/isUserMessage',
      swap: ["typeOf(message) === 'user'", 'message instanceof UserMessage'],
    },
    {
      clause: 'isAssistantMessage takes parsed JSON',
      in: 'ai/isAssistantMessage',
      swap: ["typeOf(message) === 'assistant'", 'message instanceof AssistantMessage'],
    },
    {
      clause: 'isToolResultMessage takes parsed JSON',
      in: 'ai/isToolResultMessage',
      swap: ["typeOf(message) === 'tool_result'", 'message instanceof ToolResultMessage'],
    },
    {
      clause: 'they take nothing else',
      in: 'ai/isUserMessage',
      swap: [
        "typeOf(message) === 'user'",
        "!['assistant', 'tool_result'].includes(typeOf(message) as string)",
      ],
    },
  ],
  'UPP-077': [
    {
      clause: 'the inputs are included',
      in: 'ai/TurnDraft.build',
      swap: ['[...this.#inputs, ...this.produced]', '[...this.produced]'],
    },
    {
      clause: 'the history is not',
      in: 'ai/Call.constructor',
      swap: ['new TurnDraft(inputs, request,', 'new TurnDraft(request.messages, request,'],
    },
    {
      clause: 'in order',
      in: 'ai/TurnDraft.build',
      swap: ['[...this.#inputs, ...this.produced]', '[...this.produced, ...this.#inputs]'],
    },
  ],
  'UPP-078': [
    {
      clause: 'the final message',
      in: 'ai/TurnDraft.addResponse',
      swap: ['this.#response = message', 'this.#response ??= message'],
    },
  ],
  'UPP-079': [
    {
      clause: 'every call of a message',
      in: 'ai/TurnDraft.endTools',
      swap: ['answered.map(toToolExecution)', 'answered.slice(0, 1).map(toToolExecution)'],
    },
    {
      clause: 'every round',
      in: 'ai/TurnDraft.endTools',
      swap: ['this.#executions.push(', 'this.#executions.splice(0, Infinity, '],
    },
  ],
  'UPP-080': [
    {
      clause: 'input tokens are summed',
      in: 'ai/addUsage',
      swap: ['addNumbers(a.inputTokens, b.inputTokens)', 'b.inputTokens'],
    },
    {
      clause: 'cache tokens are summed',
      in: 'ai/addUsage',
      swap: ['addNumbers(a.cacheWriteTokens, b.cacheWriteTokens)', 'a.cacheWriteTokens'],
    },
    {
      clause: 'the counters of a vendor are read',
      in: 'ai/wires/anthropic-messages/usage/toUsage',
      swap: ['totalTokens: inputTokens + outputTokens', 'totalTokens: inputTokens'],
    },
    {
      clause: 'cache counters are 0 where there is none',
      in: 'ai/src/wires/ollama-chat/stream.ts',
      swap: ['cacheReadTokens: 0,', 'cacheReadTokens: inputTokens,'],
    },
  ],
  'UPP-081': [
    {
      clause: 'cycles counts inferences',
      in: 'ai/TurnDraft.cycles',
      swap: ['return this.#usageByCycle.length', 'return this.rounds'],
    },
  ],
  'UPP-082': [
    {
      clause: 'no data without structure',
      in: 'ai/TurnDraft.turn',
      swap: [
        'if (structure === undefined || response.hasToolCalls) return freezeTree(turn)',
        'if (structure === undefined) return freezeTree({ ...turn, data: undefined })\n    if (response.hasToolCalls) return freezeTree(turn)',
      ],
    },
    {
      clause: 'no data while calls are open',
      in: 'ai/TurnDraft.turn',
      swap: ['|| response.hasToolCalls', ''],
    },
    {
      clause: 'data with structure',
      in: 'ai/TurnDraft.turn',
      swap: [
        'return freezeTree({ ...turn, data })',
        'return freezeTree(data === null ? { ...turn, data } : turn)',
      ],
    },
  ],
  'UPP-083': [
    {
      clause: 'toolName and toolCallId',
      in: 'ai/toToolExecution',
      swap: [
        '{ toolName, toolCallId, arguments: args,',
        '{ toolName: toolCallId, toolCallId, arguments: args,',
      ],
    },
    {
      clause: 'arguments',
      in: 'ai/toToolExecution',
      swap: ['arguments: args,', 'arguments: {},'],
    },
    {
      clause: 'duration in milliseconds',
      in: 'ai/toToolExecution',
      swap: ['duration: durationMs', 'duration: durationMs / 1000'],
    },
    {
      clause: 'isError',
      in: 'ai/toToolExecution',
      swap: ['result: outcome.reason, isError: true', 'result: outcome.reason, isError: false'],
    },
  ],
  'UPP-084': [
    {
      clause: 'a plain array works',
      in: 'ai/historyOf',
      swap: [
        'if (Array.isArray(value)) return value',
        'if (Array.isArray(value)) return value.slice(-1)',
      ],
    },
    {
      clause: 'so do plain objects',
      in: 'ai/asMessage',
      swap: ["if ('text' in value) return value", 'if (value) return value'],
    },
    {
      clause: 'they keep their ids',
      in: 'ai/asMessage',
      swap: [
        'messageFromJSON({ ...rest, id, timestamp })',
        'messageFromJSON({ ...rest, id: ids(), timestamp })',
      ],
    },
  ],
  'UPP-085': [
    {
      clause: 'the view is read-only',
      in: 'ai/Thread.messages',
      swap: ['Object.freeze([...this.#messages])', '[...this.#messages]'],
    },
    {
      clause: 'the view does not change later',
      in: 'ai/Thread.messages',
      swap: ['(this.#view ??= Object.freeze([...this.#messages]))', 'this.#messages'],
    },
    {
      clause: 'append adds the messages of a turn',
      in: 'ai/Thread.append',
      swap: ['this.#add(turn.messages)', 'this.#add(turn.messages.slice(1))'],
    },
    {
      clause: 'push adds all',
      in: 'ai/Thread.push',
      swap: ['return this.#add(messages)', 'return this.#add(messages.slice(0, 1))'],
    },
    {
      clause: 'clear',
      in: 'ai/Thread.clear',
      swap: [
        'this.#messages.length = 0',
        'this.#messages.length = Math.min(1, this.#messages.length)',
      ],
    },
    {
      clause: 'id',
      in: 'ai/Thread.constructor',
      swap: ['id ?? ids()', "id ?? 'thread'"],
    },
  ],
}
