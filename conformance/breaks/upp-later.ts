import type { Breaks } from './break.ts'

/** How each row of UPP, from UPP-086 on can be violated. See `break.ts`. */
export const breaks: Breaks = {
  'UPP-086': [
    {
      clause: 'bytes come back',
      in: 'ai/toBytesJson',
      swap: [
        'if (value instanceof Uint8Array) return { $bytes: encodeBase64(value) }',
        'if (value instanceof Uint8Array) return [...value]',
      ],
    },
    {
      clause: 'metadata come back',
      in: 'ai/messageToJSON',
      swap: ['...(message.metadata && { metadata: message.metadata }),', ''],
    },
    {
      clause: 'the times of the thread come back',
      in: 'ai/Thread.fromJSON',
      swap: [`thread.#updatedAt = dateOf(updatedAt, 'Thread JSON: updatedAt')`, ''],
    },
  ],
  'UPP-087': [
    {
      clause: 'the turn alone can be awaited',
      in: 'ai/BatchReader.result',
      swap: ['void this.#drain()', ''],
      by: 'streaming',
    },
    {
      clause: 'leaving the loop settles the turn',
      in: 'ai/BatchReader.leave',
      swap: [
        'if (!this.#outcome && !this.#source.isFinal?.()) this.#source.controller.abort()',
        '',
      ],
      by: 'streaming',
    },
    {
      clause: 'no unhandled rejection',
      in: 'ai/BatchReader.constructor',
      swap: ['this.#result.catch(() => {})', ''],
      by: 'unhandled-rejections',
    },
  ],
  'UPP-088': [
    {
      clause: 'an event has an index',
      in: 'ai/toEvent',
      swap: [
        `type: 'tool_execution_end',
    index,`,
        `type: 'tool_execution_end',`,
      ],
    },
    {
      clause: 'there are events',
      in: 'ai/Call.shown',
      swap: [
        'const transformed = this.run.transform(events)',
        'const transformed = this.run.transform(events.slice(events.length))',
      ],
    },
  ],
  'UPP-089': [
    {
      clause: 'blocks have starts and stops',
      in: 'ai/Call.shown',
      swap: [
        'const transformed = this.run.transform(events)',
        `const transformed = this.run.transform(events.filter(({ type }) => type !== 'content_block_stop'))`,
      ],
      by: 'upp/streaming',
    },
    {
      clause: 'thirteen types',
      in: 'ai/StreamEventType',
      swap: [`  VideoDelta: 'video_delta',\n`, ''],
      by: 'upp/streaming',
    },
    {
      clause: 'a structured answer streams as an object',
      in: 'ai/toObjectEvents',
      swap: [
        `return { type: 'object_delta', index: event.index, delta: event.delta }`,
        'return event',
      ],
      by: 'upp/structure',
    },
    {
      clause: 'a vendor’s blocks are closed',
      in: 'ai/ollama-chat/OllamaDecoder.stop',
      swap: ['this.#close(events)', ''],
      by: 'upp/wire-golden',
    },
  ],
  'UPP-090': [
    {
      clause: 'the start is seen before the tool ends',
      in: 'ai/Execution.takeEvents',
      swap: [
        'const events = this.#events',
        'if (!this.#schedule.isOver) return []\n    const events = this.#events',
      ],
    },
    {
      clause: 'the start is told before the tool runs',
      in: 'ai/runToolCall',
      swap: [
        `report({ type: 'start', call })
    const startedAt`,
        `setTimeout(() => report({ type: 'start', call }), 50)
    const startedAt`,
      ],
    },
    {
      clause: 'the end is told when the tool ends, not after its siblings',
      in: 'ai/Execution.takeEvents',
      swap: [
        `const events = this.#events
    if (events.length > 0) this.#events = []
    return events`,
        `const isHeld = ({ type }: ToolExecutionEvent) => type === 'tool_execution_end' && !this.#schedule.isOver
    const events = this.#events.filter((event) => !isHeld(event))
    this.#events = this.#events.filter(isHeld)
    return events`,
      ],
    },
  ],
  'UPP-091': [
    {
      clause: 'the same calls whatever the pieces',
      in: 'ai/StreamResult.turn',
      swap: [
        'return this.#reader.result as Promise<Turn<Data, Calls>>',
        'return this.#reader.result.then((turn) => ({ ...turn, cycles: turn.cycles + 1 })) as Promise<Turn<Data, Calls>>',
      ],
    },
    {
      clause: 'the same usage from a vendor’s stream',
      in: 'ai/AnthropicDecoder.messageDelta',
      swap: ['mergeUsage(this.#usage,', 'mergeUsage({},'],
    },
  ],
  'UPP-092': [
    {
      clause: 'an abort reaches the tool that runs',
      in: 'ai/Execution.constructor',
      swap: ['linkAbort([batch.signal], this.#controller)', '() => {}'],
    },
    {
      clause: 'the signal is in the second argument',
      in: 'ai/contextOf',
      swap: [
        'return { ...extra, signal, toolCallId, toolName }',
        'return { ...extra, signal: new AbortController().signal, toolCallId, toolName }',
      ],
    },
  ],
  'UPP-093': [
    {
      clause: 'calls that wait for their turn do not start',
      in: 'ai/Execution.startReady',
      swap: ['if (this.#controller.signal.aborted) return', ''],
    },
    {
      clause: 'a call that waited for approval does not run',
      in: 'ai/Execution.run',
      swap: ['signal: this.#controller.signal,', 'signal: new AbortController().signal,'],
    },
  ],
  'UPP-094': [
    {
      clause: 'the code is CANCELLED',
      in: 'ai/cancelledError',
      swap: ['code: ErrorCode.Cancelled,', 'code: ErrorCode.ProviderError,'],
    },
    {
      clause: 'the iterator rejects as well',
      in: 'ai/BatchReader.finish',
      swap: ['throw failed.error', 'return { value: undefined, done: true }'],
    },
    {
      clause: 'generate rejects as well',
      in: 'ai/LLM.generate',
      swap: [
        'const step = await turn.next()',
        'const step = await turn.next().catch((error: { code?: string; turn?: Turn }) => {\n        if (error.code === "CANCELLED") return { done: true, value: error.turn } as never\n        throw error\n      })',
      ],
    },
  ],
  'UPP-095': [
    {
      clause: 'a read may end inside a character',
      in: 'base/LineDecoder.decodeUtf8',
      swap: ['const stream = last >= 0x80', 'const stream = false as boolean'],
      by: 'upp/errors',
    },
    {
      clause: 'a read may end inside CRLF',
      in: 'base/LineDecoder.toText',
      swap: ['|| (this.#afterCr && first === LF)', ''],
      by: 'upp/errors',
    },
    {
      clause: 'a last event without its blank line counts',
      in: 'ai/FrameReader.constructor',
      swap: ['flushIncomplete: true', 'flushIncomplete: false'],
      by: 'upp/errors',
    },
    {
      clause: 'what came before an error is handed out first',
      in: 'ai/FrameReader.next',
      swap: [
        'this.#failure = { error: asUPPError(error, this.#options.context) }',
        'throw asUPPError(error, this.#options.context)',
      ],
      by: 'upp/errors',
    },
  ],
  'UPP-096': [
    {
      clause: 'onStart in the order of the list',
      in: 'ai/MiddlewareRun.start',
      swap: [`this.#each('onStart', this.#middleware,`, `this.#each('onStart', this.#reversed,`],
    },
    {
      clause: 'belongs to its instance',
      in: 'ai/LLM.with',
      swap: [
        'const options = this.#options as object',
        'Object.assign(this.#options, changes)\n    const options = this.#options as object',
      ],
    },
  ],
  'UPP-097': [
    {
      clause: 'onToolCall fires',
      in: 'ai/toolHooks',
      swap: ['onToolCall: (call) => run.toolCall(call),', ''],
    },
    {
      clause: 'onStreamEnd fires',
      in: 'ai/MiddlewareRun.end',
      swap: [`this.#each('onStreamEnd', this.#middleware,`, `this.#each('onStreamEnd', [],`],
    },
    {
      clause: 'an async hook is awaited',
      in: 'ai/MiddlewareRun.each',
      swap: ['await invoke(one)', 'void invoke(one)'],
    },
    {
      clause: 'onToolResult gets the result',
      in: 'ai/MiddlewareRun.toolResult',
      swap: [
        'one.onToolResult?.(call, result, this.context, outcome)',
        'one.onToolResult?.(call, undefined, this.context, outcome)',
      ],
    },
    {
      clause: 'the edited request is sent',
      in: 'ai/Call.prepare',
      swap: [
        'const edited = this.run.context.request as LLMRequest',
        'const edited = { ...this.run.context.request, params: given.params } as LLMRequest',
      ],
    },
  ],
  'UPP-098': [
    {
      clause: 'endTime is set before onEnd',
      in: 'ai/MiddlewareRun.end',
      swap: ['context.endTime = this.#clock.now()', ''],
    },
    {
      clause: 'streaming',
      in: 'ai/MiddlewareRun.constructor',
      swap: [
        `provider,
      streaming,
      request,`,
        `provider,
      streaming: true,
      request,`,
      ],
    },
    {
      clause: 'modelId',
      in: 'ai/MiddlewareRun.constructor',
      swap: [
        `modality,
      modelId,
      provider,`,
        `modality,
      modelId: provider,
      provider,`,
      ],
    },
  ],
  'UPP-099': [
    {
      clause: 'nothing but the state',
      in: 'ai/MiddlewareRun.constructor',
      swap: ['Object.freeze({ state })', 'Object.freeze({ state, request })'],
    },
    {
      clause: 'the state is shared',
      in: 'ai/MiddlewareRun.constructor',
      swap: ['Object.freeze({ state })', 'Object.freeze({ state: new Map() })'],
    },
  ],
  'UPP-100': [
    {
      clause: 'keys have the middleware’s name',
      in: 'ai/stateKey',
      swap: [`'parsedObject:parsers'`, `'parsers'`],
    },
    {
      clause: 'the accumulation is in the state',
      in: 'ai/parsedObjectMiddleware',
      swap: ['state.set(stateKey, new Map<number, PartialJson>())', ''],
    },
  ],
  'UPP-101': [
    {
      clause: 'onStart in order',
      in: 'ai/MiddlewareRun.start',
      swap: [`this.#each('onStart', this.#middleware,`, `this.#each('onStart', this.#reversed,`],
    },
    {
      clause: 'onRequest in order',
      in: 'ai/MiddlewareRun.start',
      swap: [
        `this.#each('onRequest', this.#middleware,`,
        `this.#each('onRequest', this.#reversed,`,
      ],
    },
  ],
  'UPP-102': [
    {
      clause: 'onResponse in reverse',
      in: 'ai/MiddlewareRun.end',
      swap: [
        `this.#each('onResponse', this.#reversed,`,
        `this.#each('onResponse', this.#middleware,`,
      ],
    },
    {
      clause: 'onEnd in reverse',
      in: 'ai/MiddlewareRun.end',
      swap: [`this.#each('onEnd', this.#reversed,`, `this.#each('onEnd', this.#middleware,`],
    },
  ],
  'UPP-103': [
    {
      clause: 'every middleware is told',
      in: 'ai/MiddlewareRun.fail',
      swap: [
        'for (const one of this.#middleware) {',
        'for (const one of this.#middleware.slice(0, 1)) {',
      ],
    },
    {
      clause: 'a throwing onError does not mask the error',
      in: 'ai/MiddlewareRun.fail',
      swap: ['} catch {', '} catch (masking) {\n        throw masking'],
    },
    {
      clause: 'whatever failed',
      in: 'ai/Call.fail',
      swap: [
        'return this.run.fail(failure)',
        `return isUPPError(error) ? failure : this.run.fail(failure)`,
      ],
    },
    {
      clause: 'inputs that are refused',
      in: 'ai/LLM.generate',
      swap: [
        'this.#tryRun(given, { streaming: false })',
        'this.#run(this.#toMessages(given), { streaming: false })',
      ],
    },
    {
      clause: 'a refused call has started',
      in: 'ai/runTurn',
      swap: [
        'if (!run.isEmpty || task.refuse) await race.run(run.start(task.refuse))',
        'task.refuse?.()\n    if (!run.isEmpty) await race.run(run.start())',
      ],
    },
    {
      clause: 'images: a stream that is refused',
      in: 'ai/ImageMaker.stream',
      swap: ['void stream.result', ''],
    },
    {
      clause: 'a request without config',
      in: 'ai/MiddlewareRun.fail',
      swap: ['context.request?.config ?? {}', 'context.request.config'],
    },
    {
      clause: 'the first key stays secret',
      in: 'ai/MiddlewareRun.fail',
      swap: ['[this.#config, context.request', '[context.request'],
    },
  ],
  'UPP-104': [
    {
      clause: 'onToolCall before the tool runs',
      in: 'ai/runToolCall',
      swap: [
        'await settings.hooks?.onToolCall?.(call)',
        'setTimeout(() => void settings.hooks?.onToolCall?.(call))',
      ],
    },
    {
      clause: 'onToolResult after it',
      in: 'ai/toolHooks',
      swap: ['onToolResult: (call, result, outcome) => run.toolResult(call, result, outcome),', ''],
    },
  ],
  'UPP-105': [
    {
      clause: 'embeddings: the edited request is sent',
      in: 'ai/Embedder.run',
      swap: [
        'const request = run.context.request as EmbeddingRequest',
        'const request = { ...run.context.request, inputs: [input].flat() } as EmbeddingRequest',
      ],
    },
    {
      clause: 'embeddings: onEnd runs',
      in: 'ai/Embedder.run',
      swap: ['return await run.end(joinResults(results))', 'return joinResults(results)'],
    },
    {
      clause: 'images: onError runs',
      in: 'ai/ImageMaker.run',
      swap: ['throw await run.fail(error)', 'throw error'],
    },
    {
      clause: 'images: a stream ends with onEnd',
      in: 'ai/ImageMaker.run',
      swap: [
        'return await race.run(run.end({ ...result, images }))',
        'return { ...result, images }',
      ],
    },
  ],
  'UPP-106': [
    {
      clause: 'null drops an event',
      in: 'ai/MiddlewareRun.transformAll',
      swap: [
        'else if (given !== null) next.push(given as StreamEvent)',
        'else next.push((given ?? event) as StreamEvent)',
      ],
    },
    {
      clause: 'a list expands it',
      in: 'ai/MiddlewareRun.transformAll',
      swap: [
        'next.push(...(given as readonly StreamEvent[]))',
        'next.push(...(given as readonly StreamEvent[]).slice(0, 1))',
      ],
    },
    {
      clause: 'each sees what the one before left',
      in: 'ai/MiddlewareRun.constructor',
      swap: [
        'this.#transformers = streaming ? middleware',
        'this.#transformers = streaming ? middleware.toReversed()',
      ],
    },
  ],
  'UPP-107': [
    {
      clause: 'the turn is made of the events before the hooks',
      in: 'ai/runTurn',
      swap: [
        `const arrived = fold.push(step.value)
          if (fold.isFinal) task.onFinal?.(true)
          yield call.shown(base.structure ? toObjectEvents(arrived) : arrived)`,
        `const arrived = fold.push((await call.shown(step.value)) as never)
          if (fold.isFinal) task.onFinal?.(true)
          yield arrived`,
      ],
    },
    {
      clause: 'nor do dropped tool events',
      in: 'ai/Call.runTools',
      swap: [
        'return this.draft.endTools(step.value)',
        'return this.draft.endTools(this.run.isEmpty ? step.value : { ...step.value, settled: [] })',
      ],
    },
  ],
  'UPP-108': [
    {
      clause: 'objects are parsed by default',
      in: 'ai/parsedObjectMiddleware',
      swap: ['parseObjects = true', 'parseObjects = false'],
    },
    {
      clause: 'calls are parsed by default',
      in: 'ai/parsedObjectMiddleware',
      swap: ['parseToolCalls = true', 'parseToolCalls = false'],
    },
    {
      clause: 'each message starts anew',
      in: 'ai/parsedObjectMiddleware',
      swap: [
        'state.set(stateKey, new Map<number, PartialJson>())',
        'state.set(stateKey, state.get(stateKey) ?? new Map<number, PartialJson>())',
      ],
    },
    {
      clause: 'calls can be left out',
      in: 'ai/parsedObjectMiddleware',
      swap: [
        `event.type === 'tool_call_delta' && parseToolCalls`,
        `event.type === 'tool_call_delta'`,
      ],
    },
  ],
  'UPP-109': [
    {
      clause: 'the level filters',
      in: 'ai/loggingMiddleware',
      swap: ['if (levels.indexOf(at) < lowest) return', ''],
    },
    {
      clause: 'keys are redacted',
      in: 'ai/secretsOfConfig',
      swap: [
        "return secretsOf(typeof apiKey === 'string' ? apiKey : undefined, headers)",
        'return []',
      ],
    },
    {
      clause: 'info is the default level',
      in: 'ai/loggingMiddleware',
      swap: [`level = 'info'`, `level = 'debug'`],
    },
    {
      clause: 'a failure is an error',
      in: 'ai/loggingMiddleware',
      swap: ["log('error', `failed:", "log('info', `failed:"],
    },
  ],
  'UPP-110': [
    {
      clause: 'the extended delta has the field',
      in: 'ai/ParsedEventDelta',
      swap: ['readonly parsed?: unknown', 'readonly parsedSoFar?: unknown'],
    },
  ],
  'UPP-111': [
    {
      clause: 'the base delta has no such field',
      in: 'ai/TextDeltaEvent',
      swap: [
        'readonly delta: { readonly text: string }',
        'readonly delta: { readonly text: string; readonly parsed?: unknown }',
      ],
    },
    {
      clause: 'on no event',
      in: 'ai/EventDelta',
      swap: [`StreamEvent['delta']`, `StreamEvent['delta'] & { readonly parsed?: unknown }`],
    },
  ],
  'UPP-112': [
    {
      clause: 'names are unique',
      in: 'ai/checkOptions',
      swap: ['names.add(name)', ''],
    },
    {
      clause: 'the code of a double name',
      in: 'ai/invalidRequest',
      swap: ['code: ErrorCode.InvalidRequest', 'code: ErrorCode.ProviderError'],
    },
    {
      clause: 'metadata reach the provider',
      in: 'ai/LLM.constructor',
      swap: [
        'if (!isStandardSchema(tool.parameters)) return tool',
        'if (!isStandardSchema(tool.parameters)) return { ...tool, metadata: undefined }',
      ],
    },
  ],
  'UPP-113': [
    {
      clause: 'approval is asked before the tool runs',
      in: 'ai/judge',
      swap: ['tool.approval && !ports.isApproved', 'tool.approval && ports.isApproved'],
    },
    {
      clause: 'the result goes back to the model',
      in: 'ai/TurnDraft.endTools',
      swap: ['if (answered.length > 0)', 'if (answered.length > 9)'],
    },
    {
      clause: 'the model is asked again',
      in: 'ai/TurnDraft.endTools',
      swap: ['return this.#openCalls.length === 0', 'return this.#openCalls.length > 0'],
    },
  ],
  'UPP-114': [
    {
      clause: 'a denied call does not run',
      in: 'ai/approve',
      swap: [
        'if (answer === true) return undefined',
        'if (answer === true || answer === false) return undefined',
      ],
    },
    {
      clause: 'only true approves',
      in: 'ai/approve',
      swap: ['if (answer === true) return undefined', 'if (answer !== false) return undefined'],
    },
    {
      clause: 'the model gets an error result',
      in: 'ai/toToolExecution',
      swap: [
        'return { ...base, result: outcome.reason, isError: true }',
        'return { ...base, result: outcome.reason, isError: false }',
      ],
    },
  ],
  'UPP-115': [
    {
      clause: 'the result is an error',
      in: 'ai/toToolExecution',
      swap: [
        'return { ...base, result: outcome.message, isError: true }',
        'return { ...base, result: outcome.message, isError: false }',
      ],
    },
    {
      clause: 'the run goes on',
      in: 'ai/tools/call.ts/run',
      swap: ['return failed(messageOf(error), error)', 'throw error'],
    },
  ],
  'UPP-116': [
    {
      clause: 'an unknown name is no crash',
      in: 'ai/judge',
      swap: [
        'if (!tool) {',
        `if (!tool) {\n    if (toolName === 'nope') throw new Error('unknown tool')`,
      ],
    },
    {
      clause: 'a name of every object is unknown too',
      in: 'ai/Execution.run',
      swap: [
        'tool: this.#tools.get(call.toolName),',
        'tool: (Object.fromEntries(this.#tools) as Record<string, Tool>)[call.toolName],',
      ],
    },
    {
      clause: 'the result is an error',
      in: 'ai/judge',
      swap: [
        'refused: failed(`There is no tool "${toolName}". ${list}`)',
        `refused: { type: 'done', result: list }`,
      ],
    },
  ],
  'UPP-117': [
    {
      clause: 'wrong types reach run',
      in: 'ai/judge',
      swap: [
        'if (invalidArguments) {',
        `const wanted = (tool.parameters as { required?: string[]; properties?: Record<string, { type: string }> })
  if (Object.entries(wanted.properties ?? {}).some(([name, { type }]) => type === 'integer' && typeof requested.arguments[name] !== 'number'))
    return { call: requested, refused: failed('wrong type') }
  if (invalidArguments) {`,
      ],
    },
    {
      clause: 'and nothing is left out of them',
      in: 'ai/tools/call/run',
      swap: [
        'const args = call.arguments as never',
        'const { extra: _extra, ...args } = call.arguments as never',
      ],
    },
  ],
  'UPP-118': [
    {
      clause: 'a link out of the folder is not followed',
      in: '../examples/notes-tools.ts',
      swap: ['if (!path.startsWith(home + sep)) throw new Error(`${file} is not a note.`)', ''],
    },
    {
      clause: 'nor a path out of it',
      in: '../examples/notes-tools.ts',
      swap: [
        'const [home, path] = await Promise.all([realpath(folder), realpath(join(folder, file))])\n  if (!path.startsWith(home + sep))',
        'const path = join(folder, file)\n  if (path === sep)',
      ],
    },
  ],
  'UPP-119': [
    {
      clause: 'a text has a largest length',
      in: '../examples/notes-tools.ts',
      swap: ['z.string().min(1).max(200)', 'z.string().min(1)'],
    },
    {
      clause: 'a text is no pattern',
      in: '../examples/notes-tools.ts',
      swap: [
        `(await readFile(path, 'utf8')).includes(text)`,
        `new RegExp(text.replace('(.*)*', '.')).test(await readFile(path, 'utf8'))`,
      ],
    },
    {
      clause: 'a tool with a schema checks its arguments',
      in: 'ai/tool',
      swap: [
        'run: async (params, context) => run(await check(params), context),',
        'run: async (params, context) => run(params as never, context),',
      ],
    },
  ],
  'UPP-120': [
    {
      clause: 'deleting asks',
      in: '../examples/notes-tools.ts',
      swap: ['approval: ({ name: file }) => approve(file),', ''],
    },
    {
      clause: 'the answer counts',
      in: '../examples/notes-tools.ts',
      swap: [
        'approval: ({ name: file }) => approve(file),',
        'approval: ({ name: file }) => approve(file).then(() => true),',
      ],
    },
  ],
  'UPP-121': [
    {
      clause: 'ten',
      in: 'ai/DEFAULT_ITERATIONS',
      swap: ['= 10', '= 11'],
    },
    {
      clause: 'the eleventh round does not run',
      in: 'ai/Call.isAtLimit',
      swap: [
        'if (this.draft.rounds < limit) return false',
        'if (this.draft.rounds <= limit) return false',
      ],
    },
  ],
  'UPP-122': [
    {
      clause: 'onError is told',
      in: 'ai/review',
      swap: ['strategy?.onError?.(tool, call.arguments, errorOf(own), call)', 'undefined'],
    },
    {
      clause: 'null lets a call go on',
      in: 'ai/judge',
      swap: ['answer ?? true', 'answer'],
    },
    {
      clause: 'false stops a call',
      in: 'ai/judge',
      swap: ['before.proceed : before !== false', 'before.proceed : true'],
    },
    {
      clause: 'params replace the arguments',
      in: 'ai/judge',
      swap: [`(typeof before === 'object' && before.params) || undefined`, 'undefined'],
    },
    {
      clause: 'a result of onAfterCall replaces the tool’s',
      in: 'ai/review',
      swap: ['if (after) outcome = doneOutcome(call, after.result)', ''],
    },
    {
      clause: 'onMaxIterations is told the rounds',
      in: 'ai/Call.isAtLimit',
      swap: ['strategy.onMaxIterations?.(this.draft.rounds)', 'strategy.onMaxIterations?.(0)'],
    },
    {
      clause: 'the hooks get the call',
      in: 'ai/review',
      swap: [
        'strategy?.onAfterCall?.(tool, call.arguments, own.result, call)',
        'strategy?.onAfterCall?.(tool, call.arguments, own.result, {} as never)',
      ],
    },
  ],
  'UPP-123': [
    {
      clause: 'native tools are in the body',
      in: 'ai/mergeTools',
      swap: ['return [...tools, ...(native as unknown[])]', 'return [...tools]'],
      by: 'upp/native-tools',
    },
    {
      clause: 'beside the function tools',
      in: 'ai/mergeTools',
      swap: ['return [...tools, ...(native as unknown[])]', 'return [...(native as unknown[])]'],
      by: 'upp/native-tools',
    },
    {
      clause: 'alone as well',
      in: 'ai/mergeTools',
      swap: [
        'if (native === undefined) return',
        'if (native === undefined || tools.length === 0) return',
      ],
      by: 'upp/native-tools',
    },
    {
      clause: 'what they gave is content',
      in: 'ai/AnthropicDecoder.openBlock',
      swap: [`blockKinds.get(type) ?? 'native'`, `blockKinds.get(type) ?? 'text'`],
      by: 'upp/anthropic',
    },
  ],
  'UPP-124': [
    {
      clause: 'turn.data is the parsed answer',
      in: 'ai/TurnDraft.turn',
      swap: ['return freezeTree({ ...turn, data })', 'return freezeTree(turn)'],
      by: 'upp/structure',
    },
    {
      clause: 'the schema goes to the provider',
      in: 'ai/LLM.constructor',
      swap: [
        '...(structure && { structure: toStructure(structure, this.#origin) }),',
        '...(structure && { structure: {} }),',
      ],
      by: 'upp/structure',
    },
    {
      clause: 'by each vendor in its own field',
      in: 'ai/ollama-chat/encodeRequest',
      swap: ['format: structure,', 'schema: structure,'],
      by: 'upp/ollama',
    },
  ],
  'UPP-125': [
    {
      clause: 'refused',
      in: 'ai/checkOptions',
      swap: [
        `if (structure && !capabilities.structuredOutput) throw unsupported('structured output', origin)`,
        '',
      ],
    },
    {
      clause: 'with INVALID_REQUEST',
      in: 'ai/invalidRequest',
      swap: ['code: ErrorCode.InvalidRequest', 'code: ErrorCode.ProviderError'],
    },
  ],
  'UPP-126': [
    {
      clause: 'data that breaks the schema pass',
      in: 'ai/parseData',
      swap: [
        'return JSON.parse(text) as unknown',
        `const value = JSON.parse(text) as unknown
    if (typeof value !== 'object') throw new Error('not an object')
    return value`,
      ],
    },
    {
      clause: 'and are not completed',
      in: 'ai/TurnDraft.turn',
      swap: [
        'const data = readData ? readData(structure, parsed) : parsed',
        `const data = typeof parsed === 'object' && !Array.isArray(parsed) ? { name: '', ...parsed } : parsed`,
      ],
    },
  ],
  'UPP-127': [
    {
      clause: 'INVALID_RESPONSE',
      in: 'ai/parseData',
      swap: ['code: ErrorCode.InvalidResponse,', 'code: ErrorCode.ProviderError,'],
    },
    {
      clause: 'JSON that was cut off is not completed',
      in: 'ai/parseData',
      swap: [
        'return JSON.parse(text) as unknown',
        `return JSON.parse(text.startsWith('{') && !text.endsWith('}') ? '{}' : text) as unknown`,
      ],
    },
    {
      clause: 'an empty answer is no data',
      in: 'ai/parseData',
      swap: ['return JSON.parse(text) as unknown', `return JSON.parse(text || 'null') as unknown`],
    },
    {
      clause: 'a number that was cut off is no data',
      in: 'ai/parseData',
      swap: ['/max_tokens|context_window|content_filter/', '/context_window|content_filter/'],
    },
  ],
  'UPP-128': [
    {
      clause: 'the model that was asked for',
      in: 'ai/httpEmbedding',
      swap: [
        'embed: (request) => embed(endpoint, wire, modelId, request),',
        `embed: (request) => embed(endpoint, wire, 'other', request),`,
      ],
    },
    {
      clause: 'params of the instance',
      in: 'ai/Embedder.middlewareRun',
      swap: [
        'params: options.params ? { ...params, ...options.params } : params,',
        'params: options.params ?? {},',
      ],
    },
    {
      clause: 'options of the call: inputType',
      in: 'ai/Embedder.middlewareRun',
      swap: ['const { inputType } = options', 'const inputType = undefined'],
    },
    {
      clause: 'options of the call: params',
      in: 'ai/Embedder.middlewareRun',
      swap: ['params: options.params ? { ...params, ...options.params } : params,', 'params,'],
    },
  ],
  'UPP-129': [
    {
      clause: 'text blocks',
      in: 'ai/embeddings/batches.ts/kindOf',
      swap: [
        `if (type === 'image' || (type === 'text' && typeof text === 'string')) return type`,
        `if (type === 'image') return type`,
      ],
    },
    {
      clause: 'one input without a list',
      in: 'ai/Embedder.middlewareRun',
      swap: [
        '[...(input as EmbeddingInput[])] : [input]',
        '[...(input as EmbeddingInput[])] : [String(input)]',
      ],
    },
    {
      clause: 'images only where the vendor takes them',
      in: 'ai/checkInputs',
      swap: [`(kind === 'image' && imageInput)`, `kind === 'image'`],
    },
  ],
  'UPP-130': [
    {
      clause: 'in the order of the inputs',
      in: 'ai/toResult',
      swap: ['embeddings[index] = {', 'embeddings[position] = {'],
    },
    {
      clause: 'indexes over several requests',
      in: 'ai/embedBatch',
      swap: ['index: one.index + start', 'index: one.index'],
    },
    {
      clause: 'usage is added up',
      in: 'ai/joinResults',
      swap: [
        'results.reduce((sum, { usage }) => sum + usage.totalTokens, 0)',
        'results[0]?.usage.totalTokens ?? 0',
      ],
    },
  ],
  'UPP-131': [
    {
      clause: 'dimensions is the length of the vector',
      in: 'ai/toResult',
      swap: ['dimensions: numbers.length,', 'dimensions: numbers.length + 1,'],
    },
    {
      clause: 'base64 is read in the right byte order',
      in: 'ai/decodeFloats',
      swap: ['view.getFloat32(i * 4, true)', 'view.getFloat32(i * 4, false)'],
    },
    {
      clause: 'base64 of no whole floats is an error',
      in: 'ai/decodeFloats',
      swap: [
        'if (bytes.length % 4 !== 0) return undefined',
        'if (bytes.length % 4 !== 0) return [0]',
      ],
    },
  ],
  'UPP-132': [
    {
      clause: 'chunks of batchSize',
      in: 'ai/planBatches',
      swap: [
        'if (isFull || (batchSize && index % batchSize === 0)) cut(index)',
        'if (isFull) cut(index)',
      ],
      by: 'upp/embedding',
    },
    {
      clause: 'percent',
      in: 'ai/Embedder.run',
      swap: ['percent: (end / total) * 100', 'percent: end / total'],
      by: 'upp/embedding',
    },
    {
      clause: 'each chunk has its own vectors',
      in: 'ai/Embedder.run',
      swap: ['results.slice(reported).flatMap', 'results.flatMap'],
      by: 'upp/embedding',
    },
    {
      clause: 'a signal ends it',
      in: 'ai/Embedder.run',
      swap: ['linkAbort([options.signal], controller)', 'linkAbort([], controller)'],
      by: 'abort-race',
    },
  ],
  'UPP-133': [
    {
      clause: 'metadata of a vector',
      in: 'ai/toResult',
      swap: ['metadata: decoded.metadata && { [context.provider]: decoded.metadata },', ''],
    },
    {
      clause: 'metadata of the response',
      in: 'ai/toResult',
      swap: ['metadata: { [context.provider]: metadata } }', 'metadata: {} }'],
    },
    {
      clause: 'errors have a code',
      in: 'ai/malformed',
      swap: ['code: ErrorCode.InvalidResponse', 'code: ErrorCode.ProviderError'],
    },
    {
      clause: 'metadata of several responses',
      in: 'ai/joinResults',
      swap: [
        '{ ...Object.assign({}, ...list), responses: list }',
        '{ ...Object.assign({}, ...list) }',
      ],
    },
  ],
  'UPP-134': [
    {
      clause: 'OpenAI: params in the body',
      in: 'ai/OpenAIImageModel.generation',
      swap: [
        '{ model: this.modelId, prompt, ...imposed, ...params }',
        '{ model: this.modelId, prompt, ...imposed }',
      ],
    },
    {
      clause: 'nothing of our own',
      in: 'ai/OpenAIImageModel.generation',
      swap: [
        '{ model: this.modelId, prompt, ...imposed, ...params }',
        '{ model: this.modelId, prompt, n: 1, ...imposed, ...params }',
      ],
    },
    {
      clause: 'Imagen: params as parameters',
      in: 'ai/GoogleImageModel.generate',
      swap: ['parameters: request.params as JsonObject', 'parameters: {}'],
    },
    {
      clause: 'Gemini: the caller’s generationConfig wins',
      in: 'ai/GoogleImageModel.edit',
      swap: [
        `responseModalities: ['TEXT', 'IMAGE'],
        ...generationConfigOf(request.params),`,
        `...generationConfigOf(request.params),
        responseModalities: ['TEXT', 'IMAGE'],`,
      ],
    },
  ],
  'UPP-135': [
    {
      clause: 'generate takes options',
      in: 'ai/ImageMaker.generate',
      swap: ['{ prompt: promptOf(input) }, options).result', '{ prompt: promptOf(input) }).result'],
    },
    {
      clause: 'no stream where the model has none',
      in: 'ai/ImageMaker.check',
      swap: [
        'if (!capabilities[operation] ||',
        `if ((operation !== 'streaming' && !capabilities[operation]) ||`,
      ],
    },
    {
      clause: 'no edit where the model has none',
      in: 'ai/ImageMaker.check',
      swap: [
        'if (!capabilities[operation] ||',
        `if ((operation !== 'edit' && !capabilities[operation]) ||`,
      ],
    },
    {
      clause: 'capabilities are those of the model',
      in: 'ai/ImageMaker.constructor',
      swap: [
        'Object.freeze({ ...this.model.capabilities })',
        'Object.freeze({ ...this.model.capabilities, edit: false })',
      ],
    },
  ],
  'UPP-136': [
    {
      clause: 'maxImages',
      in: 'ai/openaiImages',
      swap: [
        'return { generate: true, streaming, edit: true, maxImages: 10 }',
        'return { generate: true, streaming, edit: true }',
      ],
    },
    {
      clause: 'generate',
      in: 'ai/gemini',
      swap: ['generate: true, ', ''],
    },
    {
      clause: 'frozen',
      in: 'ai/ImageMaker.constructor',
      swap: ['Object.freeze({ ...this.model.capabilities })', '({ ...this.model.capabilities })'],
    },
    {
      clause: 'what Gemini and Imagen can do',
      in: 'ai/imagen',
      swap: ['maxImages: 4', 'maxImages: 8'],
    },
  ],
  'UPP-137': [
    {
      clause: 'usage',
      in: 'ai/requestImages',
      swap: ['usage: { imagesGenerated: images.length, ...decoded.usage },', ''],
    },
    {
      clause: 'metadata of the response',
      in: 'ai/requestImages',
      swap: ['metadata: { [provider]: decoded.metadata },', ''],
    },
    {
      clause: 'metadata of an image',
      in: 'ai/images/http-image.ts/toGenerated',
      swap: ['return { image: made, metadata: said }', 'return { image: made }'],
    },
    {
      clause: 'every image',
      in: 'ai/requestImages',
      swap: [
        'decoded.images.map((image) => toGenerated(image, call))',
        'decoded.images.slice(0, 1).map((image) => toGenerated(image, call))',
      ],
    },
  ],
  'UPP-138': [
    {
      clause: 'bytes of base64',
      in: 'ai/Image.toBytes',
      swap: [
        `if (this.source.type === 'base64') return base64Bytes(this.source.data)`,
        `if (this.source.type === 'base64') return new TextEncoder().encode(this.source.data)`,
      ],
    },
    {
      clause: 'an address is downloaded',
      in: 'ai/downloadImage',
      swap: ['if (!mayFetch(url, call)) return address', 'return address'],
    },
    {
      clause: 'without the key',
      in: 'ai/fetchBytes',
      swap: [
        `const { apiKey: _key, headers: _headers, baseUrl: _base, ...config } = request.config
  const call: VendorCall = {
    endpoint: {
      name: endpoint.name,
      baseUrl: url.origin,
      keyVariables: [],
      headers: {},
      authHeaders: () => ({}),`,
        `const { headers: _headers, baseUrl: _base, ...config } = request.config
  const call: VendorCall = {
    endpoint: {
      name: endpoint.name,
      baseUrl: url.origin,
      keyVariables: [],
      headers: {},
      authHeaders: endpoint.authHeaders,`,
      ],
    },
    {
      clause: 'without the caller’s headers',
      in: 'ai/fetchBytes',
      swap: ['headers: _headers, baseUrl: _base,', 'baseUrl: _base,'],
    },
  ],
  'UPP-139': [
    {
      clause: 'a signal of the platform ends a call',
      in: 'ai/Call.constructor',
      swap: ['linkAbort(task.signals, controller)', 'linkAbort([], controller)'],
    },
    {
      clause: 'the reason is kept',
      in: 'ai/cancelledError',
      swap: ['cause: signal.reason,', ''],
    },
    {
      clause: 'a turn is a Promise',
      in: 'ai/StreamResult.turn',
      swap: [
        'return this.#reader.result as Promise<Turn<Data, Calls>>',
        `const own = this.#reader.result
    return { then: own.then.bind(own), catch: own.catch.bind(own), finally: own.finally.bind(own) } as never`,
      ],
    },
    {
      clause: 'a provider gets an AbortSignal',
      in: 'ai/Call.prepare',
      swap: [
        'signal: this.#signal,',
        'signal: { aborted: false, addEventListener() {}, removeEventListener() {} } as never,',
      ],
    },
  ],
  'UPP-140': [
    {
      clause: 'of a message',
      in: 'ai/BaseMessage.toJSON',
      swap: [
        'return toBytesJson({ ...this })',
        'return toBytesJson({ ...this, timestamp: this.timestamp.getTime() })',
      ],
    },
    {
      clause: 'of a thread',
      in: 'ai/Thread.toJSON',
      swap: ['createdAt: this.#createdAt.toISOString(),', 'createdAt: String(this.#createdAt),'],
    },
    {
      clause: 'of a message in a thread',
      in: 'ai/messageToJSON',
      swap: ['.toISOString()', '.toString()'],
    },
  ],
  'UPP-141': [
    {
      clause: 'three',
      in: 'ai/Modality',
      swap: [`Image: 'image' }`, `Image: 'image', Audio: 'audio' }`],
    },
    {
      clause: 'their words',
      in: 'ai/Modality',
      swap: [`LLM: 'llm'`, `LLM: 'language'`],
    },
  ],
  'UPP-142': [
    {
      clause: 'error codes',
      in: 'ai/ErrorCode',
      swap: [`RateLimited: 'RATE_LIMITED'`, `RateLimited: 'RATE_LIMIT'`],
    },
    {
      clause: 'roles',
      in: 'ai/MessageRole',
      swap: [`ToolResult: 'tool_result'`, `ToolResult: 'tool'`],
    },
    {
      clause: 'events',
      in: 'ai/StreamEventType',
      swap: [`MessageStop: 'message_stop'`, `MessageStop: 'message_end'`],
    },
    {
      clause: 'all of the stop reasons',
      in: 'ai/StopReason',
      swap: [`  Refusal: 'refusal',\n`, ''],
    },
    {
      clause: 'all of the blocks',
      in: 'ai/ContentBlockType',
      swap: [`  Video: 'video',\n`, ''],
    },
  ],
  'UPP-143': [
    {
      clause: 'a provider has only what it was given',
      in: 'ai/createProvider',
      swap: ['.filter(([, handler]) => handler)', ''],
    },
    {
      clause: 'language models are not required',
      in: 'ai/createProvider',
      swap: [
        'const { name, llm, embedding, image } = definition',
        `const { name, llm, embedding, image } = definition\n  if (!llm) throw new Error('a provider needs language models')`,
      ],
    },
  ],
  'UPP-144': [
    {
      clause: 'the system prompt goes out',
      in: 'ai/openai-chat/encodeMessages',
      swap: ['[request.system, structure.instruction]', '[structure.instruction]'],
      by: 'upp/provider-levels',
    },
    {
      clause: 'text comes back',
      in: 'ai/OllamaDecoder.message',
      swap: [
        `if (typeof content === 'string' && content !== '') this.#text('text', content, events)`,
        '',
      ],
      by: 'upp/provider-levels',
    },
    {
      clause: 'errors name provider and status',
      in: 'ai/httpError',
      swap: [
        `    code,
    ...context,
    statusCode: status,`,
        `    code,
    ...context,`,
      ],
      by: 'upp/provider-levels',
    },
    {
      clause: 'capabilities',
      in: 'ai/HttpModel.constructor',
      swap: [
        'Object.freeze({ ...capabilities })',
        'Object.freeze({ ...capabilities, tools: undefined as never })',
      ],
      by: 'upp/provider-levels',
    },
  ],
  'UPP-145': [
    {
      clause: 'the same text',
      in: 'ai/AnthropicDecoder.delta',
      swap: [
        `return this.#text(block, fields['text'])`,
        `return this.#text(block, String(fields['text']).trim())`,
      ],
      by: 'upp/provider-levels',
    },
    {
      clause: 'the same usage',
      in: 'ai/AnthropicDecoder.messageDelta',
      swap: ['mergeUsage(this.#usage,', 'mergeUsage({},'],
      by: 'upp/provider-levels',
    },
    {
      clause: 'blocks are closed',
      in: 'ai/OllamaDecoder.stop',
      swap: ['this.#close(events)', ''],
      by: 'upp/provider-levels',
    },
  ],
  'UPP-146': [
    {
      clause: 'definitions',
      in: 'ai/ollama-chat/encodeRequest',
      swap: [
        'description,\n        parameters: parameters as JsonObject,',
        'parameters: parameters as JsonObject,',
      ],
      by: 'upp/ollama',
    },
    {
      clause: 'calls',
      in: 'ai/OllamaDecoder.message',
      swap: [
        'for (const call of listOf(tool_calls)) this.#call',
        'for (const call of listOf(tool_calls).slice(0, 1)) this.#call',
      ],
      by: 'upp/provider-levels',
    },
    {
      clause: 'results',
      in: 'ai/openai-chat/encodeToolResults',
      swap: ['resultText(result.result)\n', `''\n`],
      by: 'upp/provider-levels',
    },
    {
      clause: 'an error is said to be one',
      in: 'ai/anthropic-messages/encodeResult',
      swap: ['is_error: result.isError === true ? true : undefined,', ''],
      by: 'upp/provider-levels',
    },
  ],
  'UPP-147': [
    {
      clause: 'Anthropic: the schema in its dialect',
      in: 'ai/anthropic-messages/encodeRequest',
      swap: [
        `format: { type: 'json_schema', schema: format.schema },`,
        `format: { type: 'json_schema', schema: structure },`,
      ],
      by: 'upp/anthropic',
    },
    {
      clause: 'Google: the schema',
      in: 'ai/google-generate/encodeRequest',
      swap: ['responseJsonSchema: toGoogleSchema(structure, warnings),', ''],
      by: 'upp/google',
    },
    {
      clause: 'Chat Completions: the schema',
      in: 'ai/chatStructure',
      swap: [
        `response_format: { type: 'json_schema', json_schema: namedSchema(schema, isStrict) },`,
        `response_format: { type: 'json_object' },`,
      ],
      by: 'upp/provider-levels',
    },
  ],
  'UPP-148': [
    {
      clause: 'what is not declared is refused with INVALID_REQUEST',
      in: 'ai/unsupported',
      swap: ['return invalidRequest(', 'return new Error('],
      by: 'upp/provider-levels',
    },
    {
      clause: 'what is declared is sent',
      in: 'ai/openai-chat/encodePart',
      swap: [
        `const video_url = { url: toDataUrl(block.mimeType, block.data) }`,
        `const video_url = { url: '' }`,
      ],
      by: 'upp/provider-levels',
    },
    {
      clause: 'Ollama takes no address',
      in: 'ai/ollama-chat/encodeContent',
      swap: ['if (base64 === undefined) {', `if (base64 === undefined && url === '') {`],
      by: 'upp/ollama',
    },
  ],
  'UPP-149': [
    {
      clause: 'params reach the body',
      in: 'ai/openaiEmbeddings',
      swap: ['...(params as JsonObject),', ''],
      by: 'upp/embedding',
    },
    {
      clause: 'metadata of the response',
      in: 'ai/embeddings/openai/decode',
      swap: ['metadata: without(body, dataField),', 'metadata: {},'],
      by: 'upp/embedding',
    },
    {
      clause: 'a double index is an error',
      in: 'ai/toResult',
      swap: ['index >= inputs.length || embeddings[index]) {', 'index >= inputs.length) {'],
      by: 'upp/embedding',
    },
  ],
  'UPP-150': [
    {
      clause: 'editing: the mask',
      in: 'ai/OpenAIImageModel.edit',
      swap: [`if (mask) appendImage(body, 'mask', 'mask', mask, this.provider)`, ''],
      by: 'upp/image',
    },
    {
      clause: 'editing: Gemini sees every image',
      in: 'ai/GoogleImageModel.edit',
      swap: ['(request.images ?? []).map', '(request.images ?? []).slice(0, 1).map'],
      by: 'upp/image',
    },
    {
      clause: 'streaming: previews',
      in: 'ai/PartialImageDecoder.push',
      swap: [
        `if (type.endsWith('.partial_image')) {`,
        `if (type.endsWith('.partial_image')) return []\n    if (type.endsWith('.partial_image')) {`,
      ],
      by: 'upp/image',
    },
    {
      clause: 'streaming: an error in the stream',
      in: 'ai/PartialImageDecoder.push',
      swap: [`if (type === 'error' || body['error'] !== undefined) throw this.#failure(body)`, ''],
      by: 'upp/image',
    },
  ],
  'UPP-151': [
    {
      clause: 'OpenAI: unchanged',
      in: 'ai/openai-chat/encodeRequest',
      swap: [
        '...structure.fields, ...params }',
        '...structure.fields, ...params, temperature: 1 }',
      ],
    },
    {
      clause: 'names nobody knows too',
      in: 'ai/anthropic-messages/encodeRequest',
      swap: [
        `...params,
    tools,`,
        `...Object.fromEntries(Object.entries(params).filter(([name]) => !name.startsWith('x_'))),
    tools,`,
      ],
    },
    {
      clause: 'images too',
      in: 'ai/OpenAIImageModel.generation',
      swap: ['...imposed, ...params }', '...imposed }'],
    },
    {
      clause: 'the caller’s object stays as it is',
      in: 'ai/ollama-chat/encodeRequest',
      swap: [
        'const { params, structure } = request',
        `const { params, structure } = request\n  Object.assign(params, { user: 'u-2' })`,
      ],
    },
  ],
  'UPP-152': [
    {
      clause: 'it is used',
      in: 'ai/Attempt.prepare',
      swap: ['requestUrl(config.baseUrl ?? endpoint.baseUrl,', 'requestUrl(endpoint.baseUrl,'],
    },
    {
      clause: 'with its prefix',
      in: 'ai/joinUrl',
      swap: ['const prefix = url.pathname.slice(0, end)', `const prefix = ''`],
    },
    {
      clause: 'with slashes at its end',
      in: 'ai/joinUrl',
      swap: [
        `while (url.pathname[end - 1] === '/') end--`,
        `if (url.pathname[end - 1] === '/') end--`,
      ],
    },
  ],
  'UPP-153': [
    {
      clause: 'it is used',
      in: 'ai/pickTransport',
      swap: [
        'if (fetch) return fetchTransport(fetch)',
        'if (fetch) return fetchTransport(callPlatformFetch)',
      ],
    },
    {
      clause: 'with the method',
      in: 'ai/fetchTransport',
      swap: [
        `        method,
        headers,`,
        '        headers,',
      ],
    },
  ],
  'UPP-154': [
    {
      clause: 'it ends a call',
      in: 'ai/limitsOf',
      swap: [`ms('timeout', timeout) ?? ms`, `ms`],
    },
    {
      clause: 'with TIMEOUT',
      in: 'ai/Attempt.constructor',
      swap: ['code: ErrorCode.Timeout,', 'code: ErrorCode.NetworkError,'],
    },
    {
      clause: 'also while the body comes',
      in: 'ai/Attempt.open',
      swap: ['this.#response = response', 'this.#response = response\n    this.#watchdog.stop()'],
    },
  ],
  'UPP-155': [
    {
      clause: 'it is asked',
      in: 'ai/VendorRun.constructor',
      swap: ['call.config.retryStrategy ?? defaultRetry', 'defaultRetry'],
    },
    {
      clause: 'null gives up',
      in: 'ai/VendorRun.delay',
      swap: ['Math.max(0, delay) : null', 'Math.max(0, delay) : this.#failures < 5 ? 0 : null'],
    },
    {
      clause: 'attempts are counted from 1',
      in: 'ai/VendorRun.delay',
      swap: [
        'this.#strategy.onRetry(failure, this.#failures)',
        'this.#strategy.onRetry(failure, this.#failures - 1)',
      ],
    },
  ],
  'UPP-156': [
    {
      clause: 'under the provider’s name',
      in: 'ai/withNative',
      swap: [
        'return { [provider]: { api, native, ...extra } }',
        'return { [provider]: { api, native, ...extra }, vendor: native }',
      ],
    },
    {
      clause: 'of the message as well',
      in: 'ai/OllamaDecoder.stop',
      swap: ['[this.#provider]: {', 'vendor: {'],
    },
  ],
  'UPP-157': [
    {
      clause: 'fields of a call',
      in: 'ai/ollama-chat/stream/OllamaDecoder.call',
      swap: ['delta: isEmpty(native) ? {} : { metadata }', 'delta: {}'],
      by: 'upp/ollama',
    },
    {
      clause: 'blocks nobody knows',
      in: 'ai/anthropic-messages/encodeAssistantBlock',
      swap: ['return native as AnthropicBlock | undefined', 'return undefined'],
      by: 'upp/anthropic',
    },
    {
      clause: 'after they were stored',
      in: 'ai/messageFromJSON',
      swap: [
        'blocks(value) as AssistantContent[], calls(value), options',
        'blocks(value) as AssistantContent[], calls(value)?.map(({ metadata: _, ...call }) => call), options',
      ],
      by: 'upp/metadata',
    },
  ],
  'UPP-158': [
    {
      clause: 'not in the JSON of a request',
      in: 'ai/protectConfig',
      swap: [
        `...(key !== undefined && { apiKey: '[hidden]' }),`,
        '...(key !== undefined && { apiKey: key }),',
      ],
    },
    {
      clause: 'headers neither',
      in: 'ai/protectConfig',
      swap: [`[name, '[hidden]']`, '[name, headers[name]]'],
    },
    {
      clause: 'not on the instance',
      in: 'ai/LLM.constructor',
      swap: [
        'this.#options = options',
        'this.#options = options\n    Object.assign(this, { options })',
      ],
    },
    {
      clause: 'nor on one for embeddings or images',
      in: 'ai/Embedder.constructor',
      swap: [
        'this.#options = options',
        'this.#options = options\n    Object.assign(this, { options })',
      ],
    },
    {
      clause: 'a strategy hides its keys',
      in: 'ai/RoundRobinKeys.constructor',
      swap: ['this.#keys = [...keys]', 'this.#keys = [...keys]\n    Object.assign(this, { keys })'],
    },
  ],
  'UPP-159': [
    {
      clause: '__proto__ is taken out',
      in: 'ai/isShallow',
      swap: [`Reflect.deleteProperty(node, '__proto__')`, 'void 0'],
    },
    {
      clause: 'in whatever spelling',
      in: 'ai/isShallow',
      swap: [`|| text.includes('\\\\u')`, ''],
    },
    {
      clause: 'arguments that are nested too deeply do not run',
      in: 'ai/isShallow',
      swap: ['if (depth >= MAX_DEPTH) return false', ''],
    },
  ],
  'UPP-160': [
    {
      clause: 'wrong types reach run',
      in: 'ai/tools/call/run',
      swap: [
        'const args = call.arguments as never',
        `if (Object.values(call.arguments).some((value) => value === 'not a number')) throw new Error('wrong type')
    const args = call.arguments as never`,
      ],
    },
    {
      clause: 'and are not converted',
      in: 'ai/tools/call/run',
      swap: [
        'const args = call.arguments as never',
        `const args = { ...call.arguments, n: Number(call.arguments['n']) } as never`,
      ],
    },
  ],
  'UPP-161': [
    {
      clause: 'bytes of another type',
      in: 'ai/checkedType',
      swap: ['checkDeclared(bytes, type)', ''],
    },
    {
      clause: 'documents as well',
      in: 'ai/Document.fromBase64',
      swap: ['checkDeclared(base64Bytes(base64), mimeType)', 'base64Bytes(base64)'],
    },
    {
      clause: 'a type of another family',
      in: 'ai/checkedType',
      swap: ['inFamily(type, family)', ''],
    },
    {
      clause: 'addresses that nobody can fetch',
      in: 'ai/checkedUrl',
      swap: [`['https:', 'http:', 'gs:'].includes(new URL(url).protocol)`, 'new URL(url)'],
    },
  ],
  'UPP-162': [
    {
      clause: 'files',
      in: 'ai/readFileBytes',
      swap: ['if (Math.max(size, bytes.length) <= maxBytes) return bytes', 'return bytes'],
    },
    {
      clause: 'responses while they are read',
      in: 'ai/Attempt.read',
      swap: [
        `if (this.#readBytes > this.limits.maxResponseBytes) throw this.tooLarge('maxResponseBytes')`,
        `if (this.#readBytes > 1_000_000) throw this.tooLarge('maxEvents')`,
      ],
    },
    {
      clause: 'a declared length before it is read',
      in: 'ai/Attempt.bytes',
      swap: [
        `if (Number(this.headers.get('content-length') ?? 0) > this.limits.maxResponseBytes)`,
        'if (this.limits.maxResponseBytes === 0)',
      ],
    },
    {
      clause: 'the bodies of errors',
      in: 'ai/Attempt.failure',
      swap: ['while (length < this.limits.maxErrorBytes) {', 'while (length < 8_000_000) {'],
    },
  ],
  'UPP-163': [
    {
      clause: 'https by default',
      in: 'ai/vendors/groq/groq',
      swap: ['https://api.groq.com', 'http://api.groq.com'],
    },
    {
      clause: 'certificates are checked',
      in: 'ai/src/transport/http-node.ts',
      swap: [
        "tls.connect({ ALPNProtocols: ['http/1.1'],",
        "tls.connect({ rejectUnauthorized: false, ALPNProtocols: ['http/1.1'],",
      ],
    },
  ],
  'UPP-164': [
    {
      clause: 'a body that never ends',
      in: 'ai/Attempt.open',
      swap: ['this.#response = response', 'this.#response = response\n    this.#watchdog.stop()'],
    },
    {
      clause: 'its connection is closed',
      in: 'ai/Attempt.close',
      swap: ['if (this.#response) this.#response.body.cancel()', 'if (this.#response) void 0'],
    },
  ],
  'UPP-165': [
    {
      clause: 'no other members',
      in: 'ai/messageToJSON',
      swap: ['type: message.type,', 'type: message.type,\n    role: message.type,'],
      by: 'upp/messages',
    },
    {
      clause: 'calls',
      in: 'ai/messageToJSON',
      swap: [
        `...(message.type === 'assistant' && message.toolCalls && { toolCalls: message.toolCalls }),`,
        '',
      ],
      by: 'upp/messages',
    },
    {
      clause: 'a thread has updatedAt',
      in: 'ai/Thread.toJSON',
      swap: ['updatedAt: this.#updatedAt.toISOString(),', ''],
      by: 'upp/messages',
    },
    {
      clause: 'metadata',
      in: 'ai/messageToJSON',
      swap: [
        '...(message.metadata && { metadata: message.metadata }),',
        '...(message.metadata && { meta: message.metadata }),',
      ],
      by: 'upp/messages',
    },
    {
      clause: 'a thread document keeps the ids',
      in: 'threads/fromUppMessages',
      swap: ['{ message_id: id, upp_metadata: metadata }', '{ upp_metadata: metadata }'],
      by: 'convert/trips',
    },
  ],
  'UPP-166': [
    {
      clause: 'no tool runs',
      in: 'ai/Call.isAtLimit',
      swap: [
        'strategy.maxIterations ?? DEFAULT_ITERATIONS',
        'strategy.maxIterations || DEFAULT_ITERATIONS',
      ],
    },
    {
      clause: 'it is no limit that was reached',
      in: 'ai/Call.isAtLimit',
      swap: ['if (limit <= 0) return true', 'if (limit < 0) return true'],
    },
    {
      clause: 'the calls are open',
      in: 'ai/TurnDraft.addResponse',
      swap: ['this.#openCalls = openAfter(message, [])', ''],
    },
  ],
  'UPP-167': [
    {
      clause: 'tools',
      in: 'ai/checkOptions',
      swap: [`if (tools.length > 0 && !capabilities.tools) throw unsupported('tools', origin)`, ''],
    },
    {
      clause: 'streaming',
      in: 'ai/checkRequest',
      swap: [
        `if (streaming && !capabilities.streaming) throw unsupported('streaming', origin)`,
        '',
      ],
    },
    {
      clause: 'media',
      in: 'ai/checkRequest',
      swap: [
        'if (needed && !capabilities[needed])',
        `if (type !== 'audio' && needed && !capabilities[needed])`,
      ],
    },
    {
      clause: 'generate still works without streaming',
      in: 'ai/checkRequest',
      swap: ['if (streaming && !capabilities.streaming)', 'if (!capabilities.streaming)'],
    },
    {
      clause: 'requests that hooks give',
      in: 'ai/Call.constructor',
      swap: ['checkRequest(given, model, streaming)', 'given'],
    },
  ],
}
