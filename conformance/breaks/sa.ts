import type { Breaks } from './break.ts'

/** How each row of Standard Agents can be violated. See `break.ts`. */
export const breaks: Breaks = {
  'SA-01': [
    {
      clause: 'there is no separate define function',
      in: 'runtime/src/index.ts',
      swap: ['  defineAgent,', '  defineAgent,\n  defineAgent as defineSubagent,'],
    },
    {
      clause: 'the same agent runs top-level and as child',
      in: 'runtime/planSpawn',
      swap: [
        'const text = child.message ?? (',
        `const text = child.message?.concat(' (as a subagent)') ?? (`,
      ],
    },
  ],
  'SA-02': [
    {
      clause: 'the name is required',
      in: 'runtime/readAgent',
      swap: [`['name', 'sideA']`, `['sideA']`],
    },
    {
      clause: 'the name is unique',
      in: 'runtime/take',
      swap: ['if (other) {', `if (other && kind !== 'agent') {`],
    },
    {
      clause: 'both files are named',
      in: 'runtime/take',
      swap: [`files.join(' and ')`, 'files[0]'],
      by: 'definitions-files',
    },
  ],
  'SA-03': [
    {
      clause: 'sideA is required',
      in: 'runtime/readAgent',
      swap: [`['name', 'sideA']`, `['name']`],
    },
    {
      clause: 'sideA is an object',
      in: 'runtime/agentFields',
      swap: [
        'sideA: side,',
        'sideA: (value, place) => (isPlainObject(value) ? side(value, place) : undefined),',
      ],
    },
  ],
  'SA-04': [
    {
      clause: 'ai_human is the default',
      in: 'runtime/typeOf',
      swap: [
        `return isLater && sideB && !sideB.human ? 'dual_ai' : 'ai_human'`,
        `return 'dual_ai'`,
      ],
    },
    {
      clause: 'there are two values only',
      in: 'runtime/agentFields',
      swap: [`oneOf('ai_human', 'dual_ai')`, `oneOf('ai_human', 'dual_ai', 'bogus' as never)`],
    },
  ],
  'SA-05': [
    {
      clause: 'sideB is required for dual_ai',
      in: 'runtime/resolveAgent',
      swap: [
        `type === 'dual_ai' && raw.sideB === undefined`,
        `type === 'dual_ai' && raw.sideB === null`,
      ],
    },
  ],
  'SA-06': [
    {
      clause: 'an endless pair ends at the cap',
      in: 'runtime/yieldTurn',
      swap: ['turns >= agent.maxSessionTurns', 'turns > agent.maxSessionTurns'],
    },
    {
      clause: 'a session that is capped has failed',
      in: 'runtime/yieldTurn',
      swap: [
        `{ outcome: 'failed', reason: 'max_session_turns', message }`,
        `{ outcome: 'completed', reason: 'max_session_turns', message }`,
      ],
    },
    {
      clause: 'an agent that faces a person has no cap',
      in: 'runtime/yieldTurn',
      swap: [
        `agent.type !== 'dual_ai' ||`,
        `(agent.type !== 'dual_ai' && agent.maxSessionTurns > 1) ||`,
      ],
    },
  ],
  'SA-07': [
    { clause: 'the title is accepted', in: 'runtime/agentFields', swap: ['title: text,', ''] },
    {
      clause: 'the title is shown when present',
      in: 'runtime/catalogue',
      swap: [
        'Object.entries({ title, description, icon })',
        'Object.entries({ description, icon })',
      ],
    },
  ],
  'SA-08': [
    {
      clause: 'the description is in the catalogue',
      in: 'runtime/catalogue',
      swap: ['Object.entries({ title, description, icon })', 'Object.entries({ title, icon })'],
    },
    {
      clause: 'the icon is in the catalogue',
      in: 'runtime/catalogue',
      swap: [
        'Object.entries({ title, description, icon })',
        'Object.entries({ title, description })',
      ],
    },
  ],
  'SA-09': [
    {
      clause: 'exposeAsTool is false by default',
      in: 'runtime/resolveAgentTool',
      swap: ['read.exposeAsTool !== true', 'read.exposeAsTool === false'],
    },
    {
      clause: 'not callable unless it is true',
      in: 'runtime/resolveAgentTool',
      swap: ['read.exposeAsTool !== true', 'read.exposeAsTool === undefined'],
    },
    {
      clause: 'an exposed agent says what it is for',
      in: 'runtime/resolveAgent',
      swap: ['raw.toolDescription === undefined', 'raw.toolDescription === null'],
    },
  ],
  'SA-10': [
    {
      clause: 'the description of a subagent is in the schema of the tool',
      in: 'runtime/childTools',
      swap: ['description: relation.description,', 'description: relation.key,'],
    },
    {
      clause: 'the description of a handoff is in the schema of the tool',
      in: 'runtime/toolsOf',
      swap: [
        'tools.push({ name, description, parameters, run })',
        'tools.push({ name, description: agent, parameters, run })',
      ],
    },
    {
      clause: 'it is toolDescription',
      in: 'runtime/resolveAgentTool',
      swap: [`read.toolDescription ?? ''`, `read.description ?? ''`],
    },
  ],
  'SA-11': [
    {
      clause: 'state.env falls back to env of the agent',
      in: 'runtime/readerOver',
      swap: ['?? own(agent.definition.env, name) ??', '??'],
    },
    {
      clause: 'env of the agent is a default only',
      in: 'runtime/readerOver',
      swap: [
        'own(instanceEnv, name) ?? own(agent.definition.env, name)',
        'own(agent.definition.env, name) ?? own(instanceEnv, name)',
      ],
    },
  ],
  'SA-12': [
    {
      clause: 'hooks of the agent are used when the prompt has none',
      in: 'runtime/resolveSide',
      swap: [
        'findHooks(own, undefined, catalog) : given.hooks',
        'findHooks(own, undefined, catalog) : []',
      ],
      by: 'definitions',
    },
    {
      clause: 'hooks of the agent are used only then',
      in: 'runtime/resolveSide',
      swap: [
        'own ? findHooks(own, undefined, catalog)',
        'own ? [...given.hooks, ...findHooks(own, undefined, catalog)]',
      ],
      by: 'definitions',
    },
    {
      clause: 'an unknown id is an error',
      in: 'runtime/findHooks',
      swap: ['const entry = place\n', `const entry = place && typeof reference !== 'string'\n`],
      by: 'definitions',
    },
  ],
  'SA-13': [
    {
      clause: 'fields for packing are accepted',
      in: 'runtime/agentFields',
      swap: ['version: text,', ''],
    },
    {
      clause: 'they have no effect at run time',
      in: 'runtime/described',
      swap: ['return { name, type,', 'return { version: definition.version, name, type,'],
    },
  ],
  'SA-14': [
    {
      clause: 'no side B is needed',
      in: 'runtime/resolveAgent',
      swap: [
        `type === 'ai_human' && raw.sideB !== undefined`,
        `type === 'ai_human' && raw.sideB === undefined`,
      ],
    },
    {
      clause: 'side B is not a model',
      in: 'runtime/resolveAgent',
      swap: [
        `type === 'ai_human' && raw.sideB !== undefined`,
        `type === 'ai_human' && raw.sideB === null`,
      ],
    },
    {
      clause: 'the run parks for the user',
      in: 'runtime/yieldTurn',
      swap: [`agent.type !== 'dual_ai' ||`, ''],
    },
  ],
  'SA-15': [
    {
      clause: 'side B has turns',
      in: 'runtime/yieldTurn',
      swap: [`turnStart(context, side.side === 'a' ? 'b' : 'a')`, `turnStart(context, 'a')`],
    },
    {
      clause: 'side B has its own prompt',
      in: 'runtime/sideOf',
      swap: [`side === 'b' && agent.b ? agent.b : agent.a`, 'agent.a'],
    },
  ],
  'SA-16': [
    {
      clause: 'the other is the user',
      in: 'runtime/messagesOf',
      swap: ['if (entry.side !== side) {', 'if (entry.side !== side && entry.calls.length > 0) {'],
    },
    {
      clause: 'a side is the assistant to itself',
      in: 'runtime/messagesOf',
      swap: [
        'if (entry.side !== side) {',
        'if (entry.side !== side || entry.calls.length === 0) {',
      ],
    },
    {
      clause: 'calls of the other are not seen',
      in: 'runtime/messagesOf',
      swap: [
        'if (entry.side !== side) {',
        'if (entry.side !== side && entry.calls.length === 0) {',
      ],
    },
  ],
  'SA-17': [
    {
      clause: 'a warning when it is absent',
      in: 'runtime/resolveAll',
      swap: [`if (type !== 'dual_ai' || maxSessionTurns !== undefined) continue`, 'continue'],
    },
    {
      clause: 'no warning when it is set',
      in: 'runtime/resolveAll',
      swap: [`type !== 'dual_ai' || maxSessionTurns !== undefined`, `type !== 'dual_ai'`],
    },
    {
      clause: 'a session is capped all the same',
      in: 'runtime/DEFAULT_SESSION_TURNS',
      swap: ['= 250', '= Infinity'],
    },
  ],
  'SA-18': [
    {
      clause: 'side A of the child hears the call',
      in: 'runtime/messageToChild',
      swap: [
        `relation.receives === 'a' ? 'user' : 'assistant'`,
        `relation.receives === 'a' ? 'assistant' : 'user'`,
      ],
    },
    {
      clause: 'the parent goes on with the result',
      in: 'runtime/resolveAgentTool',
      swap: [`type === 'ai_human'\n      ?`, `type !== undefined\n      ?`],
    },
  ],
  'SA-19': [
    {
      clause: 'a prompt is required',
      in: 'runtime/side',
      swap: ['if (read && !first) report(', 'if (read && !first && value === null) report('],
    },
    {
      clause: 'the prompt must exist',
      in: 'runtime/find',
      swap: [
        'return report(place, unknownName(',
        `return kind === 'prompt' ? undefined : report(place, unknownName(`,
      ],
    },
  ],
  'SA-20': [
    {
      clause: 'labels are in the records',
      in: 'runtime/toSide',
      swap: ['label: config.label ?? prompt.resolved.name', 'label: prompt.resolved.name'],
    },
    {
      clause: 'each side has its own',
      in: 'runtime/agentRegistrations',
      swap: ['agent_name: label || name', 'agent_name: a.label || name'],
    },
  ],
  'SA-21': [
    {
      clause: 'stopOnResponse is true by default',
      in: 'runtime/toSide',
      swap: ['config.stopOnResponse ?? true', 'config.stopOnResponse ?? false'],
    },
    {
      clause: 'text with a call does not end the turn',
      in: 'runtime/decideStep',
      swap: ['side.stopOnResponse ? entry.calls.length === 0 :', 'side.stopOnResponse ? true :'],
    },
    {
      clause: 'with stopOnResponse false text does not end the turn',
      in: 'runtime/decideStep',
      swap: [': side.stopTool === undefined', ': true'],
    },
  ],
  'SA-22': [
    {
      clause: 'a call of the stop tool ends the turn',
      in: 'runtime/endByTool',
      swap: ['if (side.stopTool !== undefined && stop)', `if (side.stopTool === '' && stop)`],
    },
    {
      clause: 'a failing stop tool ends the turn',
      in: 'runtime/endByTool',
      swap: ['const stop = entry.calls.find(', 'const stop = done.find('],
    },
  ],
  'SA-23': [
    {
      clause: 'from the arguments',
      in: 'runtime/stopText',
      swap: ['const given = call.arguments[property]', 'const given: unknown = undefined'],
    },
    {
      clause: 'from a JSON result',
      in: 'runtime/stopText',
      swap: ['result = JSON.parse(result)', 'return undefined'],
    },
    {
      clause: 'absent: the text beside the call',
      in: 'runtime/stopText',
      swap: [
        'return undefined // a result that is not JSON has no properties',
        'return toText(result)',
      ],
    },
  ],
  'SA-24': [
    {
      clause: 'side A is capped',
      in: 'runtime/toSide',
      swap: ['maxSteps: config.maxSteps ?? Infinity', 'maxSteps: Infinity'],
    },
    {
      clause: 'side B is unaffected',
      in: 'runtime/addMessage',
      swap: ['session.steps[event.side]++', 'session.steps.a++'],
    },
    {
      clause: 'steps are those of one session',
      in: 'runtime/foldSession',
      swap: [
        'state.lastSession = { ...ended, handedOn,',
        `state.lastSession = { ...ended, reason: 'handoff', handedOn,`,
      ],
    },
  ],
  'SA-25': [
    {
      clause: 'sessionStop ends the session',
      in: 'runtime/endByTool',
      swap: ['[side.sessionStop,', '[undefined as typeof side.sessionStop,'],
    },
    {
      clause: 'it ends successfully',
      in: 'runtime/endByTool',
      swap: [`'completed', 'session_stop'`, `'failed', 'session_stop'`],
    },
    {
      clause: 'a call that fails ends nothing',
      in: 'runtime/endByTool',
      swap: [`entry.calls.filter(({ outcome }) => outcome?.type === 'done')`, 'entry.calls'],
    },
  ],
  'SA-26': [
    {
      clause: 'sessionFail ends the session',
      in: 'runtime/endByTool',
      swap: ['[side.sessionFail,', '[undefined as typeof side.sessionFail,'],
    },
    {
      clause: 'it ends with failure',
      in: 'runtime/endByTool',
      swap: [`'failed', 'session_fail'`, `'completed', 'session_fail'`],
    },
    {
      clause: 'a call that fails ends nothing',
      in: 'runtime/endByTool',
      swap: [`entry.calls.filter(({ outcome }) => outcome?.type === 'done')`, 'entry.calls'],
    },
  ],
  'SA-27': [
    {
      clause: 'the status is published',
      in: 'runtime/statusOf',
      swap: ['return [{ type', `if (text !== '') return []\n  return [{ type`],
    },
    {
      clause: 'the run continues',
      in: 'runtime/endByTool',
      swap: ['[side.sessionStop,', '[side.sessionStatus ?? side.sessionStop,'],
    },
    {
      clause: 'a call that fails publishes nothing',
      in: 'runtime/statusOf',
      swap: [` || outcome.type !== 'done'`, ''],
    },
  ],
  'SA-28': [
    {
      clause: 'the string form',
      in: 'runtime/binding',
      swap: [
        'return { isObject: false, name }',
        `return typeof value === 'string' ? report(place, 'must be an object') : { isObject: false, name }`,
      ],
    },
    {
      clause: 'the object form',
      in: 'runtime/binding',
      swap: [
        'return read && { ...read, isObject: true }',
        'return read && { name: read.name, isObject: true }',
      ],
    },
    {
      clause: 'the tool must be one of the prompt',
      in: 'runtime/toolName',
      swap: ['return report(place, `${message}${suggest(name, callable)}`)', 'return name'],
    },
  ],
  'SA-29': [
    {
      clause: 'a text is picked',
      in: 'runtime/boundMessage',
      swap: ['if (messageProperty !== undefined)', `if (messageProperty === '')`],
    },
    {
      clause: 'an object is picked as JSON',
      in: 'runtime/toText',
      swap: [`(JSON.stringify(value ?? undefined) ?? '')`, `String(value ?? '')`],
    },
    {
      clause: 'a missing property is no text',
      in: 'runtime/boundMessage',
      swap: [
        'if (messageProperty !== undefined)',
        'if (messageProperty !== undefined && call.arguments[messageProperty] !== undefined)',
      ],
    },
  ],
  'SA-30': [
    {
      clause: 'one path',
      in: 'runtime/boundAttachments',
      swap: ['Array.isArray(value) ? value : [value]', 'Array.isArray(value) ? value : []'],
    },
    {
      clause: 'many paths',
      in: 'runtime/boundAttachments',
      swap: [
        'Array.isArray(value) ? value : [value]',
        '[Array.isArray(value) ? (value as unknown[])[0] : value]',
      ],
    },
    {
      clause: 'a missing file fails the call',
      in: 'runtime/RunningCall.run',
      swap: ['if (!facade.state.statFile(path))', `if (path === '')`],
    },
  ],
  'SA-31': [
    {
      clause: 'the parent hears the mapped field of a stop',
      in: 'runtime/boundMessage',
      swap: ['if (messageProperty !== undefined)', `if (messageProperty === 'why')`],
    },
    {
      clause: 'the parent hears the mapped field of a failure',
      in: 'runtime/boundMessage',
      swap: ['if (messageProperty !== undefined)', `if (messageProperty === 'summary')`],
    },
    {
      clause: 'the mapped field of a failure is the whole text',
      in: 'runtime/bodyText',
      swap: [`reason === 'session_fail' ||`, ''],
    },
  ],
  'SA-32': [
    {
      clause: 'the end of the session comes before the stop tool',
      in: 'runtime/endByTool',
      swap: [
        'const done = entry.calls.filter(',
        'const done = entry.calls.some(({ call }) => call.toolName === side.stopTool) ? [] : entry.calls.filter(',
      ],
    },
    {
      clause: 'failure comes before success',
      in: 'runtime/endByTool',
      swap: [
        `    [side.sessionFail, 'failed', 'session_fail'],\n    [side.sessionStop, 'completed', 'session_stop'],`,
        `    [side.sessionStop, 'completed', 'session_stop'],\n    [side.sessionFail, 'failed', 'session_fail'],`,
      ],
    },
  ],
  'SA-33': [
    {
      clause: 'the text of the stop tool comes before the response',
      in: 'runtime/endByTool',
      swap: [
        'text: stopText(stop, side) ?? messageText(entry)',
        `text: messageText(entry) || (stopText(stop, side) ?? '')`,
      ],
    },
    {
      clause: 'the stop tool ends the turn among other calls',
      in: 'runtime/endByTool',
      swap: [
        'if (side.stopTool !== undefined && stop)',
        'if (side.stopTool !== undefined && stop && entry.calls.length === 1)',
      ],
    },
    {
      clause: 'then text without calls',
      in: 'runtime/decideStep',
      swap: ['side.stopOnResponse ? entry.calls.length === 0 :', 'side.stopOnResponse ? true :'],
    },
  ],
  'SA-34': [
    {
      clause: 'a terminal call on the last step counts',
      in: 'runtime/decideStep',
      swap: ['const ended = endByTool(facts)', 'const ended = limitOf(facts) ?? endByTool(facts)'],
    },
    {
      clause: 'a response on the last step counts',
      in: 'runtime/decideStep',
      swap: [
        'const text = messageText(entry)',
        'const reached = limitOf(facts)\n  if (reached) return reached\n  const text = messageText(entry)',
      ],
    },
    {
      clause: 'a terminal call in the last turn counts',
      in: 'runtime/yieldTurn',
      swap: ['turns >= agent.maxSessionTurns', 'turns + 1 >= agent.maxSessionTurns'],
    },
  ],
  'SA-35': [
    {
      clause: 'the thread is handed over',
      in: 'runtime/foldSession',
      swap: ['agentOf(event.toAgentId)', 'agentOf(event.fromAgentId)'],
    },
    {
      clause: 'the history is kept',
      in: 'runtime/viewOf',
      swap: [
        'if (includeChat) from =',
        `if (includeChat && state.lastSession?.reason !== 'handoff') from =`,
      ],
    },
    {
      clause: 'the new agent speaks at once, in the same thread',
      in: 'runtime/decideStep',
      swap: [
        `if (tool?.kind === 'handoff' && outcome?.type === 'done')`,
        `if (tool?.kind === 'handoff' && outcome?.type === 'error')`,
      ],
    },
  ],
  'SA-36': [
    {
      clause: 'an exposed dual_ai agent is no handoff',
      in: 'runtime/resolveAgentTool',
      swap: [`type === 'ai_human'\n      ?`, `type !== undefined\n      ?`],
    },
    {
      clause: 'its thread is a child of the caller',
      in: 'runtime/planSpawn',
      swap: ['parentId: head.id,', 'parentId: null,'],
    },
    {
      clause: 'its thread is in the tree of the caller',
      in: 'runtime/planSpawn',
      swap: ['rootId: head.rootId,', 'rootId: reference,'],
    },
  ],
  'SA-37': [
    {
      clause: 'ai_human in a configuration is refused',
      in: 'runtime/resolveAgentTool',
      swap: [`type === 'ai_human' && config`, `type === 'ai_human' && config === null`],
    },
    {
      clause: 'ai_human by name is refused as well',
      in: 'runtime/resolveAgentTool',
      swap: [
        `type === 'ai_human' && config`,
        `type === 'ai_human' && config && typeof config['name'] !== 'string'`,
      ],
    },
    {
      clause: 'ai_human listed plainly is no subagent',
      in: 'runtime/resolveAgentTool',
      swap: [
        `{ kind: 'handoff', name, agent: name, description }`,
        `{ kind: 'subagent', name, relation: toRelation({ name }, description, place) }`,
      ],
    },
  ],
  'SA-38': [
    {
      clause: 'a listed agent is offered',
      in: 'runtime/childTools',
      swap: ['relations.filter(({ isResumable }) => !isResumable)', '[] as Relation[]'],
    },
    {
      clause: 'a name in the list must exist',
      in: 'runtime/findTarget',
      swap: [`return report(named, unknownName('tool or agent', name, names))`, 'return undefined'],
    },
    {
      clause: 'a plain listing means what a configured one means',
      in: 'runtime/toRelation',
      swap: ['blocking = true,', `blocking = 'blocking' in config,`],
    },
  ],
  'SA-39': [
    {
      clause: 'files of its own',
      in: 'runtime/planSpawn',
      swap: [
        '      ...files.events,\n',
        '      ...files.events,\n      ...copyFiles(context, [...state.files.values()], reference).events,\n',
      ],
    },
    {
      clause: 'messages of its own',
      in: 'runtime/planSpawn',
      swap: [
        '      ...files.events,\n',
        `      ...files.events,\n      { type: 'message_added', at, turnId: reference, side: 'b', message: { id: state.entries[0]!.message.id, type: 'user', timestamp: at, content: [{ type: 'text', text: 'From the parent.' }] } },\n`,
      ],
    },
    {
      clause: 'values of its own',
      in: 'runtime/planSpawn',
      swap: [
        '      ...files.events,\n',
        `      ...files.events,\n      ...[...state.values].map(([key, value]) => ({ type: 'value_set', at, key, value }) as const),\n`,
      ],
    },
  ],
  'SA-40': [
    {
      clause: 'a child knows its parent',
      in: 'runtime/facadeSession',
      swap: ['(parent ? { threadId: parent.threadId } : null)', 'null'],
    },
    {
      clause: 'a parent knows its children',
      in: 'runtime/createThreadFacade',
      swap: ['children: deepFreeze(childRegistry(kernel))', 'children: []'],
    },
    {
      clause: 'a child that has ended is no longer in the registry',
      in: 'runtime/childRegistry',
      swap: ['{ includesEnded = false }', '{ includesEnded = true }'],
    },
  ],
  'SA-41': [
    {
      clause: 'blocking',
      in: 'runtime/create',
      swap: ['const isAwaited = relation.isBlocking', 'const isAwaited = false'],
    },
    {
      clause: 'non-blocking',
      in: 'runtime/toRelation',
      swap: ['isBlocking: blocking,', 'isBlocking: true,'],
    },
    {
      clause: 'persistent',
      in: 'runtime/toRelation',
      swap: ['isResumable: resumable !== false,', 'isResumable: false,'],
    },
  ],
  'SA-42': [
    {
      clause: 'the parent waits',
      in: 'runtime/create',
      swap: ['const isAwaited = relation.isBlocking', 'const isAwaited = false'],
    },
    {
      clause: 'the child ends',
      in: 'runtime/isDisposable',
      swap: [
        'return parent !== undefined && !parent.isResumable',
        'return false && parent === undefined',
      ],
    },
    {
      clause: 'the result is told once',
      in: 'runtime/reportToParent',
      swap: ['if (!isAwaited && isTold) {', 'if (isTold) {'],
    },
  ],
  'SA-43': [
    {
      clause: 'the parent goes on',
      in: 'runtime/create',
      swap: ['const isAwaited = relation.isBlocking', 'const isAwaited = true'],
    },
    {
      clause: 'the result comes later',
      in: 'runtime/reportToParent',
      swap: ['if (!isAwaited && isTold) {', 'if (!isAwaited && isTold && parent.isResumable) {'],
    },
    {
      clause: 'the child ends',
      in: 'runtime/isDisposable',
      swap: [
        'return parent !== undefined && !parent.isResumable',
        'return false && parent === undefined',
      ],
    },
  ],
  'SA-44': [
    {
      clause: 'each call waits',
      in: 'runtime/message',
      swap: [
        'relation.isBlocking ? environment.ids() : undefined',
        'undefined as string | undefined',
      ],
    },
    {
      clause: 'the child persists',
      in: 'runtime/isDisposable',
      swap: ['return parent !== undefined && !parent.isResumable', 'return parent !== undefined'],
    },
    {
      clause: 'the child remembers',
      in: 'runtime/viewOf',
      swap: ['if (includeChat) from =', 'if (includeChat && !state.parent) from ='],
    },
  ],
  'SA-45': [
    {
      clause: 'a message any time',
      in: 'runtime/message',
      swap: [`if (child.lifecycle === 'terminated')`, `if (child.lifecycle !== 'idle')`],
    },
    {
      clause: 'the parent does not wait for the answer',
      in: 'runtime/message',
      swap: ['relation.isBlocking ? environment.ids() : undefined', 'environment.ids()'],
    },
    {
      clause: 'a child that was messaged is running',
      in: 'runtime/message',
      swap: [`reference, status: 'running' }`, `reference, status: 'idle' }`],
    },
  ],
  'SA-46': [
    {
      clause: 'an unknown key is an error',
      in: 'runtime/readFields',
      swap: ['report(at(place, key), `is not a known field${suggest(key, known)}`)', ''],
    },
    {
      clause: 'the side that receives is taken',
      in: 'runtime/toRelation',
      swap: [`=== 'side_b' ? 'b' : 'a'`, `=== 'side_b' ? 'a' : 'a'`],
    },
    {
      clause: 'the hints are taken',
      in: 'runtime/toRelation',
      swap: ['descriptionEnv: hints.descriptionEnv', 'descriptionEnv: undefined'],
    },
  ],
  'SA-47': [
    {
      clause: 'an immediate child is created before the first step',
      in: 'runtime/next',
      swap: [
        'const isNew = state.immediateFor',
        'const isNew = state.lastSession && state.immediateFor',
      ],
    },
    {
      clause: 'the first step waits for a blocking one',
      in: 'runtime/waitsForImmediate',
      swap: [`(lifecycle === 'running' || lifecycle === 'awaiting_human')`, `lifecycle === 'idle'`],
    },
  ],
  'SA-48': [
    {
      clause: 'parentCommunication is implicit by default',
      in: 'runtime/toRelation',
      swap: [`kept.parentCommunication ?? 'implicit'`, `kept.parentCommunication ?? 'explicit'`],
    },
  ],
  'SA-49': [
    {
      clause: 'no other value enables',
      in: 'runtime/isEnabled',
      swap: [`['true', '1', 'yes']`, `['true', '1', 'yes', 'on']`],
    },
    { clause: 'in any case', in: 'runtime/isEnabled', swap: ['.toLowerCase()', ''] },
    {
      clause: 'a variable that is not set disables',
      in: 'runtime/isEnabled',
      swap: ['value !== undefined &&', 'value === undefined ||'],
    },
  ],
  'SA-50': [
    {
      clause: 'a disabled branch is not offered and cannot be called',
      in: 'runtime/toolsOf',
      swap: ['if (optional === undefined || isEnabled(env.get(optional))) relations', 'relations'],
    },
    {
      clause: 'not by a call after the one that disabled it',
      in: 'runtime/refuseDisabled',
      swap: ['optional !== undefined', 'false'],
    },
    {
      clause: 'a disabled immediate branch creates nothing',
      in: 'runtime/planImmediate',
      swap: ['if (relation.optional !== undefined &&', `if (relation.optional === '' &&`],
    },
  ],
  'SA-51': [
    {
      clause: 'on thread creation',
      in: 'runtime/activate',
      swap: [
        'if (!found.relation.isImmediate) continue',
        'if (!found.relation.isImmediate || state.entries.length === 0) continue',
      ],
    },
    {
      clause: 'the child begins at once',
      in: 'runtime/planSpawn',
      swap: ['wake: { by: now },', ''],
    },
  ],
  'SA-52': [
    {
      clause: 'on a handoff',
      in: 'runtime/next',
      swap: [
        'state.immediateFor !== agent.name &&',
        'state.immediateFor !== agent.name && !state.lastSession &&',
      ],
    },
    {
      clause: 'also if the agent before had immediate children',
      in: 'runtime/foldSession',
      swap: ['if (agent !== state.agent) state.immediateFor = undefined', ''],
    },
  ],
  'SA-53': [
    {
      clause: 'recursive',
      in: 'runtime/activate',
      swap: [
        'if (!found.relation.isImmediate) continue',
        'if (!found.relation.isImmediate || state.depth > 0) continue',
      ],
    },
    {
      clause: 'a cycle is refused',
      in: 'runtime/checkGraph',
      swap: ['  checkImmediateCycles(agents)\n', ''],
    },
    {
      clause: 'subagents nest no deeper than allowed',
      in: 'runtime/refuseBeyondLimits',
      swap: ['if (state.depth + 1 > depth)', 'if (state.depth > depth)'],
    },
  ],
  'SA-54': [
    {
      clause: 'the name is a hint',
      in: 'runtime/spawnImmediate',
      swap: ['if (name !== undefined) lines.push(`Name: ${name}`)', ''],
    },
    {
      clause: 'the description is a hint',
      in: 'runtime/spawnImmediate',
      swap: ['if (description !== undefined) lines.push(`Task: ${description}`)', ''],
    },
    {
      clause: 'the request has only the hints',
      in: 'runtime/spawnImmediate',
      swap: [
        '    if (name !== undefined) lines',
        '    lines.push(...[...context.state.env.values()].map(({ value }) => value))\n    if (name !== undefined) lines',
      ],
    },
  ],
  'SA-55': [
    {
      clause: 'the child reads a scoped variable',
      in: 'runtime/envEvents',
      swap: ['for (const name of relation.scopedEnv) names.set(name, true)', ''],
    },
    {
      clause: 'siblings do not',
      in: 'runtime/envEvents',
      swap: ['if (!isScoped && !scoped.has(name))', 'if (!isScoped)'],
    },
    {
      clause: 'grandchildren do not',
      in: 'runtime/envEvents',
      swap: ['if (!isScoped && !scoped.has(name))', 'if (!scoped.has(name))'],
    },
  ],
  'SA-56': [
    {
      clause: 'a scoped value is shown to no model',
      in: 'runtime/hiddenNames',
      swap: ['.filter((name) => !shown.has(name))', '.filter((name) => name === undefined)'],
    },
    {
      clause: 'unless it is named as a hint',
      in: 'runtime/hiddenNames',
      swap: ['.filter((name) => !shown.has(name))', ''],
    },
    {
      clause: 'a value that was provided later is hidden, too',
      in: 'runtime/sealed',
      swap: ['texts.has(name) ?', 'texts.has(name) || true ?'],
    },
    {
      clause: 'also if its child declares it as text',
      in: 'runtime/requestedVariables',
      swap: ['isSecret(context, asker, one.name)', 'false'],
    },
    {
      clause: 'not in a hint that contains it',
      in: 'runtime/askLogged',
      swap: ['context.redactor()?.text(input) ?? input', 'input'],
    },
  ],
  'SA-57': [
    {
      clause: 'resumables have subagent_message',
      in: 'runtime/childTools',
      swap: [
        'tools.push(createTool(resumable), messageTool(resumable))',
        'tools.push(createTool(resumable))',
      ],
    },
    {
      clause: 'others have no lifecycle tools',
      in: 'runtime/childTools',
      swap: ['if (resumable.length > 0) tools', 'tools'],
    },
  ],
  'SA-58': [
    {
      clause: 'a blank name is refused',
      in: 'runtime/createTool',
      swap: [`name.trim() === ''`, `name === ''`],
    },
    {
      clause: 'a missing name is refused',
      in: 'runtime/createTool',
      swap: [
        `typeof name !== 'string' || name.trim() === ''`,
        `typeof name === 'string' && name.trim() === ''`,
      ],
    },
    {
      clause: 'the instance has that name',
      in: 'runtime/createdPayload',
      swap: [`name: asText(args['name'])?.trim(),`, 'name: relation.key,'],
    },
  ],
  'SA-59': [
    {
      clause: 'the tool is named after the agent',
      in: 'runtime/childTools',
      swap: ['name: relation.key,', 'name: `subagent_${relation.key}`,'],
    },
    {
      clause: 'a non-resumable is a direct tool',
      in: 'runtime/childTools',
      swap: [
        'const resumable = relations.filter(({ isResumable }) => isResumable)',
        'const resumable = relations',
      ],
    },
  ],
  'SA-60': [
    {
      clause: 'no more instances than the cap',
      in: 'runtime/refuseBeyondLimits',
      swap: ['live.length < relation.maxInstances', 'live.length <= relation.maxInstances'],
    },
    {
      clause: 'the error explains the cap',
      in: 'runtime/refuseBeyondLimits',
      swap: [
        '`There may be ${relation.maxInstances} instances of "${relation.key}", and there are ${live.length}. ',
        '`Refused. ',
      ],
    },
    {
      clause: 'the error suggests messaging',
      in: 'runtime/refuseBeyondLimits',
      swap: [' Message one of them with subagent_message instead: ${references}.', ''],
    },
    {
      clause: 'no race',
      in: 'runtime/mustFollow',
      swap: [`return before !== 'read'`, `return before === 'write'`],
    },
  ],
  'SA-61': [
    {
      clause: 'missing variables are an error',
      in: 'runtime/create',
      swap: ['if (missing.length > 0) {', 'if (missing.length > 99) {'],
    },
    {
      clause: 'the error is structured',
      in: 'runtime/variablesError',
      swap: ['new Error(JSON.stringify(details))', 'new Error(details.message)'],
    },
    {
      clause: 'the error names what is missing',
      in: 'runtime/missingVariables',
      swap: ['.filter(({ name, hasDefault }) => !hasDefault && env.get(name) === undefined)', ''],
    },
  ],
  'SA-62': [
    {
      clause: 'GET',
      in: 'runtime/ADDRESSES',
      swap: [
        'GET /threads/{threadId}/variables/{requestId}',
        'GET /threads/{threadId}/missing/{requestId}',
      ],
    },
    {
      clause: 'POST',
      in: 'runtime/ADDRESSES',
      swap: [
        'POST /threads/{threadId}/variables/{requestId}',
        'PUT /threads/{threadId}/variables/{requestId}',
      ],
    },
    {
      clause: 'temporary: it takes one answer',
      in: 'runtime/checkProvided',
      swap: ['if (pending.provided)\n', 'if (pending.provided && pending.error)\n'],
    },
  ],
  'SA-63': [
    {
      clause: 'the required names',
      in: 'runtime/variablesApi',
      swap: [
        'return { requestId, required, missing, expiresAt, status }',
        'return { requestId, required: [], missing, expiresAt, status }',
      ],
    },
    {
      clause: 'the missing names',
      in: 'runtime/variablesApi',
      swap: [
        'return { requestId, required, missing, expiresAt, status }',
        'return { requestId, required, missing: [], expiresAt, status }',
      ],
    },
    {
      clause: 'never values',
      in: 'runtime/sealed',
      swap: [`texts.has(name) ? ('text' as const)`, `name.endsWith('CODE') ? ('text' as const)`],
    },
  ],
  'SA-64': [
    {
      clause: 'the values are stored',
      in: 'runtime/planDeferred',
      swap: ['provided: values,', ''],
      by: 'variables.test',
    },
    {
      clause: 'the files are those of the call',
      in: 'runtime/planDeferred',
      swap: ['attachments: requested.attachments ?? []', 'attachments: []'],
      by: 'variables.test',
    },
    {
      clause: 'the arguments are those of the call',
      in: 'runtime/variablesError',
      swap: ['arguments: args,', 'arguments: {},'],
      by: 'http.test',
    },
  ],
  'SA-65': [
    {
      clause: 'side A stops',
      in: 'runtime/endByTool',
      swap: ['[side.sessionStop,', `[side.side === 'a' ? undefined : side.sessionStop,`],
    },
    {
      clause: 'side B stops',
      in: 'runtime/endByTool',
      swap: ['[side.sessionStop,', `[side.side === 'b' ? undefined : side.sessionStop,`],
    },
    {
      clause: 'the object form',
      in: 'runtime/boundMessage',
      swap: ['if (messageProperty !== undefined)', `if (messageProperty === '')`],
    },
  ],
  'SA-66': [
    {
      clause: 'the mapped property is the first message',
      in: 'runtime/messageIn',
      swap: [
        'asText(from === undefined ? plain : args[from])',
        'from === undefined ? asText(plain) : JSON.stringify(args)',
      ],
    },
    {
      clause: 'all arguments are readable in the child',
      in: 'runtime/planSpawn',
      swap: ['        arguments: args,\n', '        arguments: {},\n'],
    },
    {
      clause: 'the mapped name names the instance',
      in: 'runtime/payloadOf',
      swap: ['name: named === undefined ? undefined : asText(valid[named]),', 'name: undefined,'],
    },
  ],
  'SA-67': [
    {
      clause: 'the message reaches the child',
      in: 'runtime/message',
      swap: [`const text = asText(args['message']) ?? ''`, `const text = ''`],
    },
    {
      clause: 'a child that was terminated is sent nothing',
      in: 'runtime/message',
      swap: ['{ id: reference, mustBeLive: true, append,', '{ id: reference, append,'],
    },
    {
      clause: 'the side that receives hears it',
      in: 'runtime/messageToChild',
      swap: [`relation.receives === 'a' ? 'user' : 'assistant'`, `'user'`],
    },
  ],
  'SA-68': [
    {
      clause: 'before the first message is queued',
      in: 'runtime/planSpawn',
      swap: [
        '      ...files.events,\n      messageToChild(context, { text, files, relation, interruptId }),\n',
        '      messageToChild(context, { text, files, relation, interruptId }),\n      ...files.events,\n',
      ],
    },
    {
      clause: 'before a later message is queued',
      in: 'runtime/message',
      swap: [
        '[...files.events, messageToChild(drain, { text, files, relation, interruptId })]',
        '[messageToChild(drain, { text, files, relation, interruptId }), ...files.events]',
      ],
    },
  ],
  'SA-69': [
    {
      clause: 'the exact text',
      in: 'runtime/openingOf',
      swap: ['has returned the following result:\\n\\n', 'has returned the following result:\\n'],
    },
    { clause: 'silent', in: 'runtime/silentMessage', swap: ['isSilent: true, ', ''] },
    {
      clause: 'implicit only',
      in: 'runtime/reportToParent',
      swap: [
        `(parent.communication === 'implicit' && report.outcome !== 'terminated')`,
        `report.outcome !== 'terminated'`,
      ],
    },
  ],
  'SA-70': [
    {
      clause: 'returned files are copied',
      in: 'runtime/reportToParent',
      swap: ['...(isTold ? files.events : []),', ''],
    },
    {
      clause: 'the paths are those of the parent',
      in: 'runtime/copyFiles',
      swap: ['paths.push(path)', 'paths.push(file.path)'],
    },
  ],
  'SA-71': [
    {
      clause: 'the exact text',
      in: 'runtime/openingOf',
      swap: ['has reported a failure:', 'has failed:'],
    },
    { clause: 'silent', in: 'runtime/silentMessage', swap: ['isSilent: true, ', ''] },
    {
      clause: 'a limit is told with its reason',
      in: 'runtime/bodyText',
      swap: [' (reason: ${reason})', ''],
    },
  ],
  'SA-72': [
    {
      clause: 'files of a failure are copied',
      in: 'runtime/reportToParent',
      swap: [
        'findFiles(context, present)',
        `findFiles(context, outcome === 'failed' ? [] : present)`,
      ],
    },
    {
      clause: 'all of them',
      in: 'runtime/reportToParent',
      swap: ['findFiles(context, present)', `findFiles(context, present.slice(0, 1))`],
    },
  ],
  'SA-73': [
    {
      clause: 'the registry is updated',
      in: 'runtime/statusToParent',
      swap: ['return listedAs(context, { status, statusText: event.text })', 'return []'],
    },
    {
      clause: 'the child goes on',
      in: 'runtime/endByTool',
      swap: ['[side.sessionStop,', '[side.sessionStatus ?? side.sessionStop,'],
    },
  ],
  'SA-74': [
    {
      clause: 'explicit: nothing is queued by itself',
      in: 'runtime/reportToParent',
      swap: [
        `(parent.communication === 'implicit' && report.outcome !== 'terminated')`,
        `report.outcome !== 'terminated'`,
      ],
    },
    {
      clause: 'explicit: no failure is queued',
      in: 'runtime/reportToParent',
      swap: [
        `(parent.communication === 'implicit' && report.outcome !== 'terminated')`,
        `((parent.communication === 'implicit' || report.outcome === 'failed') && report.outcome !== 'terminated')`,
      ],
    },
    {
      clause: 'explicit: no end is queued',
      in: 'runtime/reportToParent',
      swap: [
        `(parent.communication === 'implicit' && report.outcome !== 'terminated')`,
        `(parent.communication === 'implicit' || report.outcome === 'terminated')`,
      ],
    },
  ],
  'SA-75': [
    {
      clause: 'notifyParent queues the raw text',
      in: 'runtime/facadeSession',
      swap: ['text: content,', 'text: content.trim(),'],
    },
    {
      clause: 'setStatus sets the text',
      in: 'runtime/liveMembers',
      swap: [
        `await immediate([{ type: 'status_changed', at: at(), status: 'running', text }])`,
        `await immediate([{ type: 'status_changed', at: at(), status: 'running' }])`,
      ],
    },
    { clause: 'silently', in: 'runtime/silentMessage', swap: ['isSilent: true, ', ''] },
  ],
  'SA-76': [
    {
      clause: 'createdAt in microseconds',
      in: 'runtime/childRegistry',
      swap: ['createdAt: microseconds(created.at)', 'createdAt: Date.parse(created.at)'],
    },
    {
      clause: 'blocking',
      in: 'runtime/childRegistry',
      swap: ['blocking: created.isBlocking ?? false', 'blocking: true'],
    },
    {
      clause: 'description',
      in: 'runtime/planSpawn',
      swap: [
        'description: description ?? relation.description',
        'description: relation.description',
      ],
    },
    {
      clause: 'status',
      in: 'runtime/childRegistry',
      swap: [
        `status: (lifecycle === 'running' || lifecycle === 'idle') && statusText ? statusText : state`,
        `status: 'running'`,
      ],
    },
  ],
  'SA-77': [
    {
      clause: 'models are told of children',
      in: 'runtime/registryNote',
      swap: [`return text === told ? [] : [noteMessage(context, text, 'registry')]`, 'return []'],
    },
    {
      clause: 'only when something has changed',
      in: 'runtime/registryNote',
      swap: ['return text === told ? [] :', 'return'],
    },
    {
      clause: 'each side',
      in: 'runtime/registryNote',
      swap: ['const told = isSeen ? last : undefined', 'const told = state.registryText.a'],
    },
  ],
  'SA-78': [
    {
      clause: 'initial',
      in: 'runtime/planSpawn',
      swap: [
        'copyFiles(context, child.attachments, reference)',
        'copyFiles(context, [], reference)',
      ],
    },
    {
      clause: 'messaging',
      in: 'runtime/message',
      swap: [`findFiles(drain, pathsOf(args['attachments']))`, 'findFiles(drain, [])'],
    },
    {
      clause: 'a missing file fails the call',
      in: 'runtime/findFiles',
      swap: [
        'if (!file) throw new Error(`There is no file ${given} in this thread; nothing was sent.`)\n    return file',
        `return file ?? { path, mediaType: 'text/plain', sizeBytes: 0, hash: '', writtenAt: '' }`,
      ],
    },
  ],
  'SA-79': [
    {
      clause: 'completion',
      in: 'runtime/reportToParent',
      swap: [
        'findFiles(context, present)',
        `findFiles(context, outcome === 'completed' ? [] : present)`,
      ],
    },
    {
      clause: 'failure',
      in: 'runtime/reportToParent',
      swap: [
        'findFiles(context, present)',
        `findFiles(context, outcome === 'failed' ? [] : present)`,
      ],
    },
    {
      clause: 'all files of a notice',
      in: 'runtime/facadeSession',
      swap: ['attachments: paths })', 'attachments: paths.slice(0, 1) })'],
    },
  ],
  'SA-80': [
    {
      clause: 'paths of the destination',
      in: 'runtime/attachmentPath',
      swap: [
        'return `/attachments/${cutBytes(stem, MAX_STEM_BYTES)}-${hash}${extension}`',
        'return normalisePath(sourcePath)',
      ],
    },
    {
      clause: 'arguments have them, too',
      in: 'runtime/planSpawn',
      swap: [
        'const args = isLocal ?',
        'const args = isLocal && !Array.isArray(given) && given === null ?',
      ],
    },
    {
      clause: 'a report has them, too',
      in: 'runtime/bodyText',
      swap: ['return withPaths(text, files)', 'return text'],
    },
  ],
  'SA-81': [
    {
      clause: 'ordered',
      in: 'runtime/takeQueue',
      swap: ['[...context.state.queue]', 'context.state.queue.toReversed()'],
      by: 'queue.test',
    },
    {
      clause: 'a message is queued once',
      in: 'runtime/sendMessage',
      swap: ['if (known !== undefined) return { result: known }', ''],
      by: 'queue.test',
    },
    {
      clause: 'durable',
      in: 'runtime/sendMessage',
      swap: ['const wake = { by: context.clock.now() }', 'const wake = undefined'],
      by: 'queue.test',
    },
  ],
  'SA-82': [
    {
      clause: 'injected before the next step',
      in: 'runtime/beginStep',
      swap: [
        'side.agent ? [] : await takeQueue(context, side)',
        'side.agent || side ? [] : await takeQueue(context, side)',
      ],
      by: 'queue.test',
    },
    {
      clause: 'all that is queued',
      in: 'runtime/takeQueue',
      swap: ['[...context.state.queue]', 'context.state.queue.slice(0, 1)'],
      by: 'queue.test',
    },
  ],
  'SA-83': [
    {
      clause: 'the side that the last message is for answers',
      in: 'runtime/sideOfLast',
      swap: [`=== 'assistant' && agent.b ? 'b' : 'a'`, `=== 'user' && agent.b ? 'b' : 'a'`],
      by: 'queue.test',
    },
    {
      clause: 'a message forces the next turn',
      in: 'runtime/sendMessage',
      swap: [
        'const wake = { by: context.clock.now() }',
        'const wake = state.lastSession ? undefined : { by: context.clock.now() }',
      ],
      by: 'queue.test',
    },
  ],
  'SA-84': [
    {
      clause: 'the signal of a running tool is aborted',
      in: 'runtime/RunningCall',
      swap: ['linkAbort([given], cut)', 'linkAbort([], cut)'],
    },
    {
      clause: 'the request to the model is aborted',
      in: 'runtime/askModel',
      swap: [
        'asking.instance.infer(asking.messages, { signal: controller.signal })',
        'asking.instance.with({ signal: undefined }).infer(asking.messages)',
      ],
      by: 'terminate',
    },
    {
      clause: 'nothing comes after it',
      in: 'runtime/next',
      swap: ['if (state.terminated) {', 'if (state.terminated && !session) {'],
    },
  ],
  'SA-85': [
    {
      clause: 'nothing is queued or changed',
      in: 'runtime/isOver',
      swap: [`head.lifecycle === 'terminated' || `, ''],
      by: 'terminate.test',
    },
    {
      clause: 'nothing is executed',
      in: 'runtime/next',
      swap: ['if (state.terminated) {', 'if (state.terminated && session) {'],
      by: 'terminate.test',
    },
    {
      clause: 'over HTTP',
      in: 'runtime/threadIsOver',
      swap: [`code: 'THREAD_TERMINATED'`, `code: 'INPUT_INVALID'`],
      by: 'http.test',
    },
  ],
  'SA-86': [
    {
      clause: 'the registry says terminated',
      in: 'runtime/foldService',
      swap: [
        'child.lifecycle = event.outcome',
        `child.lifecycle = event.outcome === 'terminated' ? 'failed' : event.outcome`,
      ],
    },
    {
      clause: 'for good',
      in: 'runtime/foldService',
      swap: [
        `if (!child || child.lifecycle === 'terminated') return
      child.lifecycle = event.outcome`,
        `if (!child) return
      child.lifecycle = event.outcome`,
      ],
      by: 'fold/snapshot',
    },
  ],
  'SA-87': [
    {
      clause: 'the loop of worker and reviewer',
      in: 'runtime/yieldTurn',
      swap: [`turnStart(context, side.side === 'a' ? 'b' : 'a')`, `turnStart(context, 'a')`],
    },
    {
      clause: 'approve',
      in: 'runtime/endByTool',
      swap: ['[side.sessionStop,', '[undefined as typeof side.sessionStop,'],
    },
    {
      clause: 'fail',
      in: 'runtime/endByTool',
      swap: [`'failed', 'session_fail'`, `'completed', 'session_fail'`],
    },
    {
      clause: 'status',
      in: 'runtime/statusToParent',
      swap: ['return listedAs(context, { status, statusText: event.text })', 'return []'],
    },
  ],
}
