import type { Breaks } from './break.ts'

/** How each row of ThreadProtocol can be violated. See `break.ts`. */
export const breaks: Breaks = {
  'TP-01': [
    {
      clause: 'the version is 2.0.0',
      in: 'threads/ThreadCheck.version',
      swap: [
        'IssueCode.NewerVersion : IssueCode.UnsupportedVersion',
        'IssueCode.NewerVersion : IssueCode.NewerVersion',
      ],
    },
    {
      clause: 'the root is an object',
      in: 'threads/ThreadCheck.thread',
      swap: [
        `if (!isObject(value)) return this.report(IssueCode.WrongType, '', 'an object')`,
        'if (!isObject(value)) return',
      ],
    },
  ],
  'TP-02': [
    {
      clause: 'thread_id is a string',
      in: 'threads/ThreadCheck.thread',
      swap: [`this.id(value['thread_id'], '/thread_id')`, ''],
    },
    {
      clause: 'an id is a UUID where that is asked for',
      in: 'threads/IssueCollector.id',
      swap: ['!UUID.test(value)', `UUID.test('')`],
    },
  ],
  'TP-03': [
    {
      clause: 'created_at is a timestamp',
      in: 'threads/ThreadCheck.thread',
      swap: [
        `this.time(value['created_at'], '/created_at')`,
        `Date.parse(value['created_at'] as string) * 1000`,
      ],
    },
    {
      clause: 'updated_at is a timestamp',
      in: 'threads/ThreadCheck.thread',
      swap: [
        `this.time(value['updated_at'], '/updated_at')`,
        `Date.parse(value['updated_at'] as string) * 1000`,
      ],
    },
    {
      clause: 'updated_at is not before created_at',
      in: 'threads/ThreadCheck.thread',
      swap: ['if (updated < created)', 'if (updated > created + 1e18)'],
    },
  ],
  'TP-04': [
    {
      clause: 'title is a string',
      in: 'threads/ThreadCheck.thread',
      swap: [`if (value['title'] !== undefined)`, `if (value['title'] === null)`],
    },
    {
      clause: 'metadata is an object',
      in: 'threads/ThreadCheck.thread',
      swap: [`value['metadata'] !== undefined && !isObject(value['metadata'])`, 'false'],
    },
  ],
  'TP-05': [
    {
      clause: 'agents is required',
      in: 'threads/ThreadCheck.registry',
      swap: [
        `if (!isObject(agents)) return this.missingOr(agents, '/agents', 'an object')`,
        'if (!isObject(agents)) return',
      ],
    },
    {
      clause: 'agents may be empty',
      in: 'threads/ThreadCheck.registry',
      swap: [
        'this.#agents = agents',
        `this.#agents = agents
    if (Object.keys(agents).length === 0) this.report(IssueCode.MissingField, '/agents')`,
      ],
    },
  ],
  'TP-06': [
    {
      clause: 'agent_id is required',
      in: 'threads/ThreadCheck.agent',
      swap: ["this.id(agent['agent_id'], `${at}/agent_id`)", ''],
    },
    {
      clause: 'agent_name is required',
      in: 'threads/ThreadCheck.agent',
      swap: ["this.text(agent['agent_name'], `${at}/agent_name`)", ''],
    },
    {
      clause: 'created_at is required',
      in: 'threads/ThreadCheck.agent',
      swap: ["this.time(agent['created_at'], `${at}/created_at`)", ''],
    },
    {
      clause: 'optional fields are strings',
      in: 'threads/ThreadCheck.agent',
      swap: [`['model_name', 'provider_name', 'config_ref']`, `['model_name', 'provider_name']`],
    },
    {
      clause: 'optional fields may be absent',
      in: 'threads/ThreadCheck.agent',
      swap: [
        'this.optionalText(agent[name], `${at}/${name}`)',
        'this.text(agent[name], `${at}/${name}`)',
      ],
    },
  ],
  'TP-07': [
    {
      clause: 'the key is the agent_id',
      in: 'threads/ThreadCheck.agent',
      swap: [`agent['agent_id'] !== key`, `agent['agent_id'] === undefined`],
    },
  ],
  'TP-08': [
    {
      clause: 'turns is a list',
      in: 'threads/ThreadCheck.turns',
      swap: [`return this.missingOr(turns, '/turns', 'an array')`, 'return'],
    },
    {
      clause: 'an unknown type is an error in strict',
      in: 'threads/SEVERITIES',
      swap: [`unknown_turn_type: 'e`, `unknown_turn_type: 'w`],
    },
    {
      clause: 'turn_type is required',
      in: 'threads/ThreadCheck.turn',
      swap: [`else this.unknownWord(IssueCode.UnknownTurnType, type, '/turn_type')`, ''],
    },
  ],
  'TP-09': [
    {
      clause: 'submitted_at is required',
      in: 'threads/ThreadCheck.userTurn',
      swap: [`this.time(turn['submitted_at'], '/submitted_at')`, '0'],
    },
    {
      clause: 'parts are required',
      in: 'threads/ThreadCheck.userTurn',
      swap: [`this.#parts(turn['parts'])`, ''],
    },
  ],
  'TP-10': [
    {
      clause: 'agent_id is required',
      in: 'threads/ThreadCheck.agentTurn',
      swap: [`this.#registered(agentId, '/agent_id')`, ''],
    },
    {
      clause: 'started_at is required',
      in: 'threads/ThreadCheck.agentTurn',
      swap: [`this.time(turn['started_at'], '/started_at')`, '0'],
    },
    {
      clause: 'completed_at is required',
      in: 'threads/ThreadCheck.agentTurn',
      swap: [`this.time(turn['completed_at'], '/completed_at')`, 'Infinity'],
    },
    {
      clause: 'messages are required',
      in: 'threads/ThreadCheck.agentTurn',
      swap: [`return this.missingOr(messages, '/messages', 'an array')`, 'return'],
    },
    {
      clause: 'total_usage is usage',
      in: 'threads/ThreadCheck.agentTurn',
      swap: [`this.#usage(turn['total_usage'], '/total_usage')`, ''],
    },
  ],
  'TP-11': [
    {
      clause: 'another run_id is another turn',
      in: 'threads/HistoryImport.sameRun',
      swap: ['runId === this.#runId && (runId !== null || !prompted)', '!prompted'],
    },
    {
      clause: 'the messages of a run are one turn',
      in: 'threads/HistoryImport.sameRun',
      swap: ['return runId === this.#runId', 'return runId === NaN'],
    },
  ],
  'TP-12': [
    {
      clause: 'message_type is request or response',
      in: 'threads/ThreadCheck.message',
      swap: [
        `this.unknownWord(IssueCode.BadValue, type, '/message_type'`,
        `this.unknownWord(IssueCode.BadValue, undefined, '/message_type'`,
      ],
    },
    {
      clause: 'timestamp is required',
      in: 'threads/ThreadCheck.message',
      swap: [`this.time(message['timestamp'], '/timestamp')`, '0'],
    },
    {
      clause: 'parts are required',
      in: 'threads/ThreadCheck.message',
      swap: [`this.#parts(message['parts'])`, ''],
    },
    {
      clause: 'agent_id is required',
      in: 'threads/ThreadCheck.message',
      swap: [`this.#registered(agentId, '/agent_id')`, ''],
    },
  ],
  'TP-13': [
    {
      clause: 'each response field on a request is a warning',
      in: 'threads/RESPONSE_FIELDS',
      swap: [`'provider_response_id',`, ''],
    },
    {
      clause: 'they are no warning on a response',
      in: 'threads/ThreadCheck.responseFields',
      swap: [`if (type === 'response') return`, ''],
    },
  ],
  'TP-14': [
    {
      clause: 'timestamp is required',
      in: 'threads/ThreadCheck.systemMessage',
      swap: [`this.time(message['timestamp'], '/timestamp')`, '0'],
    },
    {
      clause: 'event_type is required',
      in: 'threads/ThreadCheck.systemMessage',
      swap: [`this.text(message['event_type'], '/event_type')`, ''],
    },
    {
      clause: 'event_data is required',
      in: 'threads/ThreadCheck.systemMessage',
      swap: [`if (message['event_data'] === undefined)`, `if (message['event_data'] === null)`],
    },
    {
      clause: 'source_agent is a string',
      in: 'threads/ThreadCheck.systemMessage',
      swap: [`this.optionalText(source, '/source_agent')`, ''],
    },
    {
      clause: 'target_agents are strings',
      in: 'threads/ThreadCheck.systemMessage',
      swap: ['this.text(target, `/target_agents/${index}`)', ''],
    },
    {
      clause: 'target_agents may be absent',
      in: 'threads/ThreadCheck.systemMessage',
      swap: ['if (targets === undefined || targets === null) return time', ''],
    },
  ],
  'TP-15': [
    {
      clause: 'any event type is legal',
      in: 'threads/ThreadCheck.systemMessage',
      swap: [
        `this.text(message['event_type'], '/event_type')`,
        `this.text(message['event_type'], '/event_type')
    if (!String(message['event_type']).includes('.')) this.report(IssueCode.BadValue, '/event_type')`,
      ],
    },
  ],
  'TP-16': [
    {
      clause: 'text is a kind of part',
      in: 'threads/checkPart',
      swap: [`    case 'text':`, `    case 'text-x' as never:`],
    },
    {
      clause: 'tool-call is a kind of part',
      in: 'threads/checkPart',
      swap: [`    case 'tool-call':`, `    case 'tool-call-x' as never:`],
    },
    {
      clause: 'tool-return is a kind of part',
      in: 'threads/checkPart',
      swap: [`    case 'tool-return':`, `    case 'tool-return-x' as never:`],
    },
    {
      clause: 'retry-prompt is a kind of part',
      in: 'threads/checkPart',
      swap: [`    case 'retry-prompt':`, `    case 'retry-prompt-x' as never:`],
    },
    {
      clause: 'file is a kind of part',
      in: 'threads/checkPart',
      swap: [`    case 'file':`, `    case 'file-x' as never:`],
    },
    {
      clause: 'user-prompt is a kind of part',
      in: 'threads/checkPart',
      swap: [`    case 'user-prompt':`, `    case 'user-prompt-x' as never:`],
    },
    {
      clause: 'thinking is a kind of part',
      in: 'threads/checkPart',
      swap: [`    case 'thinking':`, `    case 'thinking-x' as never:`],
    },
  ],
  'TP-17': [
    {
      clause: 'content is required',
      in: 'threads/checkPart',
      swap: [
        `check.text(part['content'], '/content')
      return`,
        'return',
      ],
    },
    {
      clause: 'id is text',
      in: 'threads/checkPart',
      swap: [`return check.optionalText(part['id'], '/id')`, 'return'],
    },
  ],
  'TP-18': [
    {
      clause: 'provider_name where something depends on it',
      in: 'threads/checkThinking',
      swap: [`(part['signature'] || part['thinking_id'] || part['id'])`, `part['thinking_id']`],
    },
    {
      clause: 'the rest is optional',
      in: 'threads/checkThinking',
      swap: [
        `check.optionalText(part['content'], '/content')`,
        `check.text(part['content'], '/content')`,
      ],
    },
  ],
  'TP-19': [
    {
      clause: 'tool_name is required',
      in: 'threads/checkToolCall',
      swap: [`check.text(part['tool_name'], '/tool_name')`, ''],
    },
    {
      clause: 'tool_call_id is required',
      in: 'threads/checkToolCall',
      swap: [`check.id(id, '/tool_call_id')`, ''],
    },
    {
      clause: 'args are required',
      in: 'threads/checkToolCall',
      swap: [
        `if (args === undefined) check.report(IssueCode.MissingField, '/args')`,
        'if (args === undefined) return',
      ],
    },
    {
      clause: 'args may be null',
      in: 'threads/checkToolCall',
      swap: ['if (args === undefined)', 'if (args === undefined || args === null)'],
    },
  ],
  'TP-20': [
    {
      clause: 'tool_name is required',
      in: 'threads/checkToolReturn',
      swap: [`check.text(part['tool_name'], '/tool_name')`, ''],
    },
    {
      clause: 'tool_call_id is required',
      in: 'threads/checkToolReturn',
      swap: [`check.id(id, '/tool_call_id')`, ''],
    },
    {
      clause: 'status is one of three',
      in: 'threads/checkToolReturn',
      swap: [`&& status !== 'validation_error'`, ''],
    },
    {
      clause: 'another status is refused',
      in: 'threads/checkToolReturn',
      swap: ['IssueCode.BadValue, status', 'IssueCode.BadValue, Symbol()'],
    },
    {
      clause: 'content is required',
      in: 'threads/checkToolReturn',
      swap: [
        `if (part['content'] === undefined) check.report(IssueCode.MissingField, '/content')`,
        '',
      ],
    },
  ],
  'TP-21': [
    {
      clause: 'content is a string or a list',
      in: 'threads/checkRetryPrompt',
      swap: [
        `if (!Array.isArray(content)) return check.text(content, '/content')`,
        'if (!Array.isArray(content)) return',
      ],
    },
    {
      clause: 'a problem has type, msg and loc',
      in: 'threads/checkRetryPrompt',
      swap: [`check.text(item['msg'], '/msg')`, ''],
    },
    {
      clause: 'tool_name is text',
      in: 'threads/checkRetryPrompt',
      swap: [`check.optionalText(part['tool_name'], '/tool_name')`, ''],
    },
    {
      clause: 'tool_call_id is text',
      in: 'threads/checkRetryPrompt',
      swap: [`check.optionalText(id, '/tool_call_id')`, ''],
    },
  ],
  'TP-22': [
    {
      clause: 'content is required',
      in: 'threads/checkPart',
      swap: [`return check.missingOr(content, '/content', 'an object')`, 'return'],
    },
    {
      clause: 'content is checked',
      in: 'threads/checkPart',
      swap: [`return checkContent(check, content, '/content')`, 'return'],
    },
  ],
  'TP-23': [
    {
      clause: 'content is required',
      in: 'threads/checkPart',
      swap: [
        `if (!Array.isArray(content)) return check.text(content, '/content')`,
        'if (!Array.isArray(content)) return',
      ],
    },
    {
      clause: 'an item is text or content',
      in: 'threads/checkPart',
      swap: [
        `if (!isObject(item)) return check.report(IssueCode.WrongType, '', 'a string or an object')`,
        'if (!isObject(item)) return',
      ],
    },
  ],
  'TP-24': [
    {
      clause: 'image-url is a kind',
      in: 'threads/checkContent',
      swap: [`    case 'image-url':`, `    case 'image-url-x' as never:`],
    },
    {
      clause: 'audio-url is a kind',
      in: 'threads/checkContent',
      swap: [`    case 'audio-url':`, `    case 'audio-url-x' as never:`],
    },
    {
      clause: 'video-url is a kind',
      in: 'threads/checkContent',
      swap: [`    case 'video-url':`, `    case 'video-url-x' as never:`],
    },
    {
      clause: 'document-url is a kind',
      in: 'threads/checkContent',
      swap: [`    case 'document-url':`, `    case 'document-url-x' as never:`],
    },
    {
      clause: 'url is required',
      in: 'threads/checkUrl',
      swap: ["check.text(content['url'], `${at}/url`)", ''],
    },
    {
      clause: 'identifier is required',
      in: 'threads/checkUrl',
      swap: ["check.text(content['identifier'], `${at}/identifier`)", ''],
    },
    {
      clause: 'media_type is text',
      in: 'threads/checkUrl',
      swap: ["check.optionalText(content['media_type'], `${at}/media_type`)", ''],
    },
    {
      clause: 'force_download is a boolean',
      in: 'threads/checkUrl',
      swap: [`typeof force !== 'boolean' && force !== 'allow-local'`, 'false'],
    },
  ],
  'TP-25': [
    {
      clause: 'data is base64',
      in: 'threads/checkBase64',
      swap: ['if (!padded || NOT_BASE64.test(body))', 'if (!padded)'],
    },
    {
      clause: 'padding is right',
      in: 'threads/checkBase64',
      swap: ['if (!padded || NOT_BASE64.test(body))', 'if (NOT_BASE64.test(body))'],
    },
    {
      clause: 'the URL alphabet too',
      in: 'threads/NOT_BASE64',
      swap: ['A-Za-z0-9+/_-', 'A-Za-z0-9+/'],
    },
    {
      clause: 'media_type is required',
      in: 'threads/checkContent',
      swap: ["check.text(content['media_type'], `${at}/media_type`)", ''],
    },
    {
      clause: 'identifier is required',
      in: 'threads/checkContent',
      swap: ["check.text(content['identifier'], `${at}/identifier`)", ''],
    },
  ],
  'TP-26': [
    {
      clause: 'counters are numbers',
      in: 'threads/ThreadCheck.usage',
      swap: [`count !== undefined && typeof count !== 'number'`, 'count === null'],
    },
    { clause: 'each counter', in: 'threads/COUNTERS', swap: [`'thinking_tokens',`, ''] },
    {
      clause: 'one of five reasons',
      in: 'threads/isFinishReason',
      swap: [`value === 'content_filter' ||`, ''],
    },
    {
      clause: 'no other reason',
      in: 'threads/ThreadCheck.responseFields',
      swap: ['!isFinishReason(reason)', `typeof reason !== 'string'`],
    },
  ],
  'TP-27': [
    {
      clause: 'import never yields one',
      in: 'threads/importParts',
      swap: [
        `part['part_kind'] === 'system-prompt' && configs`,
        `part['part_kind'] === 'system-prompts' && configs`,
      ],
    },
    {
      clause: 'instructions are not stored either',
      in: 'threads/convert',
      swap: ['configs.put(value)', 'value'],
    },
    {
      clause: 'one that is found is reported',
      in: 'threads/checkPart',
      swap: [`return check.report(IssueCode.InlineSystemPrompt, '')`, 'return'],
    },
  ],
  'TP-28': [
    {
      clause: 'the loader is asked for the agent',
      in: 'threads/withSystemPrompt',
      swap: ['await load(agentId)', `await load('')`],
    },
    {
      clause: 'first',
      in: 'threads/withSystemPrompt',
      swap: [
        '[systemPromptMessage(content), ...messages]',
        '[...messages, systemPromptMessage(content)]',
      ],
    },
    {
      clause: 'as an own request, on export to Pydantic AI',
      in: 'threads/toPydanticAI',
      swap: [
        'messages.unshift(systemPromptRequest(options.systemPrompt))',
        'messages.push(systemPromptRequest(options.systemPrompt))',
      ],
    },
  ],
  'TP-29': [
    {
      clause: 'a request',
      in: 'threads/View.request',
      swap: [`kind: 'request'`, `kind: 'response'`],
    },
    {
      clause: 'with the time of the turn',
      in: 'threads/View.request',
      swap: ['timestamp: turn.submitted_at,', ''],
    },
    {
      clause: 'with those parts',
      in: 'threads/View.request',
      swap: ['parts: this.#own(turn.parts)', 'parts: this.#own(turn.parts.slice(0, 1))'],
    },
    {
      clause: 'in the export to Pydantic AI as well',
      in: 'threads/exportMessage',
      swap: [`? 'response' : 'request'`, `? 'response' : 'response'`],
    },
  ],
  'TP-30': [
    {
      clause: 'not repeated in the agent turn',
      in: 'threads/HistoryImport.message',
      swap: [
        `this.#runId = readable['run_id'] ?? null
        return`,
        `this.#runId = readable['run_id'] ?? null`,
      ],
    },
  ],
  'TP-31': [
    {
      clause: 'no part is stored twice',
      in: 'threads/importParts',
      swap: [
        'stored.push(own ?? part)',
        `stored.push(own ?? part)
    if (stored.length === 2) stored.push(own ?? part)`,
      ],
    },
  ],
  'TP-32': [
    {
      clause: 'nothing about pending is written',
      in: 'threads/importPart',
      swap: [
        'if (!isObject(part)) return part',
        `if (!isObject(part)) return part
  if (part['part_kind'] === 'tool-call') return { ...part, pending: true }`,
      ],
    },
    {
      clause: 'the state is derived',
      in: 'threads/toolCalls',
      swap: [`const state = 'pending'`, `const state = 'completed'`],
    },
  ],
  'TP-33': [
    {
      clause: 'a call without return is pending',
      in: 'threads/pendingToolCalls',
      swap: [`state === 'pending'`, `state === 'retried'`],
    },
    {
      clause: 'a call with a return is not',
      in: 'threads/CallLedger.answer',
      swap: [
        `this.#calls.set(id, undefined)
    return waiting`,
        `this.#calls.set(id, undefined)
    return undefined`,
      ],
    },
    {
      clause: 'an answer belongs to the nearest call',
      in: 'threads/CallLedger.answer',
      swap: ['waiting.pop()', 'waiting.shift()'],
    },
  ],
  'TP-34': [
    {
      clause: 'denied is told apart',
      in: 'threads/toolCalls',
      swap: [
        `part.outcome === 'denied' || part.outcome === 'interrupted'`,
        `part.outcome === 'interrupted'`,
      ],
    },
    {
      clause: 'interrupted is told apart',
      in: 'threads/toolCalls',
      swap: [
        `part.outcome === 'denied' || part.outcome === 'interrupted'`,
        `part.outcome === 'denied'`,
      ],
    },
    {
      clause: 'failed is told apart',
      in: 'threads/toolCalls',
      swap: [`isFailed ? 'failed' : 'completed'`, `'completed'`],
    },
  ],
  'TP-35': [
    {
      clause: 'the returns begin the next turn',
      in: 'threads/HistoryImport.sameRun',
      swap: ['runId === this.#runId', '(runId === this.#runId || !prompted)'],
    },
  ],
  'TP-36': [
    {
      clause: 'started_at is the time of the first message',
      in: 'threads/HistoryImport.closeRun',
      swap: ['messages[0]!.timestamp', 'messages.at(-1)!.timestamp'],
    },
    {
      clause: 'completed_at is the time of the last message',
      in: 'threads/HistoryImport.closeRun',
      swap: ['completed_at: messages.at(-1)!.timestamp', 'completed_at: messages[0]!.timestamp'],
    },
  ],
  'TP-37': [
    {
      clause: 'it is the sum',
      in: 'threads/HistoryImport.closeRun',
      swap: [
        `'usage' in message ? message.usage : undefined)),`,
        `'usage' in message ? message.usage : undefined)).slice(-1),`,
      ],
    },
    {
      clause: 'absent if none reported',
      in: 'threads/HistoryImport.closeRun',
      swap: ['...(usage && { total_usage: usage })', 'total_usage: usage ?? {}'],
    },
  ],
  'TP-38': [
    {
      clause: 'order is kept',
      in: 'threads/View.messages',
      swap: ['of this.#thread.turns)', 'of this.#thread.turns.toReversed())'],
    },
    {
      clause: 'system messages are skipped',
      in: 'threads/View.agentTurn',
      swap: [`if (message.message_type === 'system') continue`, ''],
    },
    {
      clause: 'user turns become requests',
      in: 'threads/View.messages',
      swap: [
        `if (turn.turn_type === 'user') yield this.#request(turn)`,
        `if (turn.turn_type === 'user') continue`,
      ],
    },
    {
      clause: 'also in the export to Pydantic AI',
      in: 'threads/pydantic-ai/agentMessages',
      swap: ['messages.entries()', 'messages.toReversed().entries()'],
    },
  ],
  'TP-39': [
    {
      clause: 'own text is not labelled',
      in: 'threads/View.agentTurn',
      swap: ['message.agent_id === this.#viewer', `message.agent_id === ''`],
    },
    {
      clause: 'the text of others is',
      in: 'threads/View.foreignPart',
      swap: [
        'content: label + escapePrefixes(part.content)',
        'content: escapePrefixes(part.content)',
      ],
    },
    {
      clause: 'a user prompt of another is not touched',
      in: 'threads/View.foreignPart',
      swap: [
        `case 'user-prompt':
        return [escapePart(part)]`,
        `case 'user-prompt':
        return [{ ...part, content: label + String(part.content) }]`,
      ],
    },
    {
      clause: 'a tool return of another is not touched',
      in: 'threads/View.foreignPart',
      swap: [
        `      case 'tool-return':`,
        `      case 'tool-return':
        return [{ ...part, content: label + String(part.content) }]`,
      ],
    },
  ],
  'TP-40': [
    {
      clause: 'a view changes nothing',
      in: 'threads/View.foreign',
      swap: [
        'const label = labelOf(this.#thread, message.agent_id)',
        `const label = labelOf(this.#thread, message.agent_id)
    for (const part of message.parts) if (part.part_kind === 'text') (part as { content: string }).content = label + part.content`,
      ],
    },
  ],
  'TP-41': [
    {
      clause: 'the form',
      in: 'threads/labelOf',
      swap: ['return `{agent:${name}}: `', 'return `{agent:${name}} `'],
    },
    {
      clause: `the registry's name`,
      in: 'threads/labelOf',
      swap: ['agent?.agent_name ?? agentId', 'agentId'],
    },
  ],
  'TP-42': [
    {
      clause: 'text',
      in: 'threads/UIMessageAssembler.push',
      swap: [
        `part.text += chunk.delta
        if (chunk.providerMetadata) part.providerMetadata = chunk.providerMetadata
        return
      }
      case 'reasoning-delta'`,
        `part.text = chunk.delta
        if (chunk.providerMetadata) part.providerMetadata = chunk.providerMetadata
        return
      }
      case 'reasoning-delta'`,
      ],
    },
    {
      clause: 'thinking',
      in: 'threads/UIMessageAssembler.push',
      swap: [
        `this.#reasonings.set(id, part)
        parts.push(part)`,
        'this.#reasonings.set(id, part)',
      ],
    },
  ],
  'TP-43': [
    {
      clause: 'the name is what follows data-',
      in: 'threads/UIMessageAssembler.pushData',
      swap: [
        'const part = { ...chunk }',
        "const part = { ...chunk, type: chunk.type.split('.')[0] as `data-${string}` }",
      ],
    },
  ],
  'TP-44': [
    {
      clause: 'an unknown chunk is refused',
      in: 'threads/UIMessageAssembler.pushFrame',
      swap: [
        `if (chunk.type.startsWith('data-'))`,
        `if (!chunk.type.startsWith('data-')) return
        if (chunk.type.startsWith('data-'))`,
      ],
    },
    {
      clause: 'what is left out is named',
      in: 'threads/UIMessageAssembler.drop',
      swap: ['this.dropped.push({ index: this.#count - 1, type, reason })', ''],
    },
  ],
  'TP-45': [
    {
      clause: 'the enriched prompt is not shown as the question',
      in: 'threads/View.agentTurn',
      swap: [
        `if (message.message_type === 'system') continue`,
        `if (message.message_type === 'system') {
        yield { kind: 'request', parts: [{ part_kind: 'user-prompt', content: String((message.event_data as { enriched: string }).enriched) }] }
        continue
      }`,
      ],
    },
  ],
  'TP-46': [
    {
      clause: 'own text parts stay apart',
      in: 'threads/View.own',
      swap: [
        'return viewed.every((part, index) => part === parts[index]) ? parts : viewed',
        `return viewed.filter((part, index, all) => part.part_kind !== 'text' || all[index - 1]?.part_kind !== 'text')`,
      ],
    },
    {
      clause: 'text parts of others stay apart',
      in: 'threads/View.foreign',
      swap: [
        'if (parts.length === 0 && message.parts.length > 0) return undefined',
        `if (parts.length === 0 && message.parts.length > 0) return undefined
    parts.splice(1)`,
      ],
    },
  ],
  'TP-47': [
    {
      clause: 'fields of the provider stay',
      in: 'threads/convert',
      swap: [
        '} else setOwn(draft, key, value)',
        `} else if (!key.startsWith('provider_')) setOwn(draft, key, value)`,
      ],
    },
  ],
  'TP-48': [
    {
      clause: 'the field is kept in views',
      in: 'threads/NOT_IN_VIEW',
      swap: [
        `'turn_type',`,
        `'turn_type',
  'agent_id',`,
      ],
    },
  ],
  'TP-49': [
    {
      clause: 'the order of views is the position',
      in: 'threads/View.agentTurn',
      swap: [
        'of turn.messages)',
        'of [...turn.messages].toSorted((a, b) => ((a as { sequence?: number }).sequence ?? 0) - ((b as { sequence?: number }).sequence ?? 0)))',
      ],
    },
    {
      clause: 'no number is wanted',
      in: 'threads/ThreadCheck.message',
      swap: [
        `this.#parts(message['parts'])`,
        `this.#parts(message['parts'])
    if (message['sequence'] === undefined) this.report(IssueCode.MissingField, '/sequence')`,
      ],
    },
  ],
  'TP-50': [
    {
      clause: 'reading does not change it',
      in: 'threads/parseThread',
      swap: [
        'if (valid) return value as Thread',
        `if (valid) return { ...(value as Thread), version: '2.0.0' }`,
      ],
    },
  ],
  'TP-51': [
    { clause: '1.0.0', in: 'threads/CONVERTERS', swap: [`['1.0.0', withActions],`, ''] },
    { clause: '0.0.3', in: 'threads/CONVERTERS', swap: [`['0.0.3', withTurns],`, ''] },
    { clause: '0.0.4', in: 'threads/CONVERTERS', swap: [`['0.0.4', withTurns],`, ''] },
  ],
  'TP-52': [
    {
      clause: 'unknown fields are read',
      in: 'threads/parseThread',
      swap: [
        'if (valid) return value as Thread',
        `if (valid) return JSON.parse(JSON.stringify(value, (key, item: unknown) => (key.startsWith('x-') ? undefined : item))) as Thread`,
      ],
    },
    {
      clause: 'unknown fields are written',
      in: 'threads/stringifyThread',
      swap: [
        'return stringifyJson(thread, options.indent)',
        'return stringifyJson({ version: thread.version, thread_id: thread.thread_id, created_at: thread.created_at, updated_at: thread.updated_at, title: thread.title, metadata: thread.metadata, agents: thread.agents, turns: thread.turns }, options.indent)',
      ],
    },
  ],
  'TP-53': [
    {
      clause: 'the way back restores names',
      in: 'threads/goBack',
      swap: [`draft[rename(key, 'kind')] = kind`, 'draft[key] = kind'],
    },
    {
      clause: 'reserved fields come back',
      in: 'threads/goBack',
      swap: [
        'return origin.fields && origin.keys ? withFields(draft, origin.fields, origin.keys) : draft',
        'return draft',
      ],
    },
  ],
  'TP-54': [
    {
      clause: 'the text of the client is that of the server',
      in: 'threads/UIMessageAssembler.push',
      swap: [
        `part.text += chunk.delta
        if (chunk.providerMetadata) part.providerMetadata = chunk.providerMetadata
        return
      }
      case 'reasoning-delta'`,
        `part.text += chunk.delta.slice(0, 2)
        if (chunk.providerMetadata) part.providerMetadata = chunk.providerMetadata
        return
      }
      case 'reasoning-delta'`,
      ],
    },
  ],
  'TP-V1': [
    { clause: 'hours', in: 'threads/instantOf', swap: ['hour <= 23', 'hour <= 24'] },
    {
      clause: 'days of the month',
      in: 'threads/daysOf',
      swap: ['day > daysInMonth ? NO_DAY : time / 86_400_000', 'time / 86_400_000'],
    },
    { clause: 'offsets', in: 'threads/withZone', swap: ['minutes > 59 ||', ''] },
  ],
  'TP-V2': [
    {
      clause: 'a return needs a call',
      in: 'threads/checkToolReturn',
      swap: [
        'check.calls.knows(id) ? IssueCode.DuplicateReturn : IssueCode.ReturnWithoutCall',
        'IssueCode.DuplicateReturn',
      ],
    },
    {
      clause: 'of the same tool',
      in: 'threads/checkToolReturn',
      swap: [`call.toolName !== part['tool_name']`, 'call.toolName === null'],
    },
  ],
  'TP-V3': [
    {
      clause: 'of a turn',
      in: 'threads/ThreadCheck.agentTurn',
      swap: [`this.#registered(agentId, '/agent_id')`, `this.id(agentId, '/agent_id')`],
    },
    {
      clause: 'of a message',
      in: 'threads/ThreadCheck.message',
      swap: [`this.#registered(agentId, '/agent_id')`, `this.id(agentId, '/agent_id')`],
    },
    {
      clause: 'source_agent, as a warning',
      in: 'threads/ThreadCheck.systemMessage',
      swap: [`if (typeof source === 'string') this.#eventAgent(source, '/source_agent')`, ''],
    },
    {
      clause: 'target_agents, as a warning',
      in: 'threads/ThreadCheck.systemMessage',
      swap: [
        "if (typeof target === 'string') this.#eventAgent(target, `/target_agents/${index}`)",
        '',
      ],
    },
  ],
  'TP-V4': [
    {
      clause: 'turns do not overlap',
      in: 'threads/ThreadCheck.sequence',
      swap: ['if (start < this.#latestEnd)', 'if (start < -1)'],
    },
    {
      clause: 'one may start when another ends',
      in: 'threads/ThreadCheck.sequence',
      swap: ['if (start < this.#latestEnd)', 'if (start <= this.#latestEnd)'],
    },
  ],
  'TP-V5': [
    {
      clause: 'messages are in order',
      in: 'threads/ThreadCheck.agentTurn',
      swap: ['if (time < latest)', 'if (time < 0)'],
    },
    {
      clause: 'equal is allowed',
      in: 'threads/ThreadCheck.agentTurn',
      swap: ['if (time < latest)', 'if (time <= latest)'],
    },
    {
      clause: 'compared as instants',
      in: 'threads/withZone',
      swap: ['return sign === 43 ? micros - offset : micros + offset', 'return micros'],
    },
  ],
}
