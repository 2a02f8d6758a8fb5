import type { Breaks } from './break.ts'

/** How each row of UAP can be violated. See `break.ts`. */
export const breaks: Breaks = {
  'UAP-001': [
    {
      clause: 'an input text becomes a UserMessage of @skein/ai',
      in: 'agents/AgentCore.toInput',
      swap: [
        `if (typeof input === 'string') return new UserMessage(input, { ids, clock })`,
        `if (typeof input === 'string') return { ...new UserMessage(input, { ids, clock }), text: input } as never`,
      ],
    },
  ],
  'UAP-002': [
    {
      clause: 'the tool strategy goes to llm',
      in: 'agents/AgentCore.llm',
      swap: [
        'llm({ ...this.options, model, tools, toolStrategy, middleware })',
        'llm({ ...this.options, model, tools, toolStrategy: undefined, middleware })',
      ],
    },
  ],
  'UAP-005': [
    {
      clause: 'the name of the package',
      in: 'agents/package.json',
      swap: ['"name": "@skein/agents"', '"name": "AgentsOfSkein"'],
    },
  ],
  'UAP-011': [
    {
      clause: 'metadata of messages reach the next request',
      in: 'agents/runStep',
      swap: [
        'const added = state.withMessages(messages)',
        'const added = state.withMessages(messages.map((one) => Object.assign(Object.create(Object.getPrototypeOf(one) as object) as Message, one, { metadata: undefined })))',
      ],
    },
  ],
  'UAP-012': [
    {
      clause: 'lists are frozen',
      in: 'agents/SharedList.view',
      swap: [
        'Object.freeze(this.#items.slice(0, this.length))',
        'this.#items.slice(0, this.length)',
      ],
    },
    {
      clause: 'an older state is not changed by an append to it',
      in: 'agents/SharedList.append',
      swap: ['isNewest ? this.#items : this.#items.slice(0, this.length)', 'this.#items'],
    },
    {
      clause: 'values in metadata are frozen',
      in: 'agents/withEntry',
      swap: ['[name]: frozenData(value)', '[name]: value'],
    },
  ],
  'UAP-016': [
    {
      clause: 'options are passed on by spreading',
      in: 'agents/agent',
      swap: [
        'filter(([, value]) => value !== undefined)',
        `filter(([name, value]) => value !== undefined && name !== 'params')`,
      ],
    },
    {
      clause: 'the spread agent gets a new id',
      in: 'agents/agent',
      swap: ['id: ids(),', 'id: (options as { id?: string }).id ?? ids(),'],
    },
  ],
  'UAP-017': [
    {
      clause: '300 rounds',
      in: 'agents/StrategyRun.mayRunTools',
      swap: ['?? Infinity)', '?? 100)'],
    },
  ],
  'UAP-018': [
    {
      clause: 'loop without a limit',
      in: 'agents/loop',
      swap: ['maxIterations = Infinity', 'maxIterations = 100'],
    },
  ],
  'UAP-019': [
    {
      clause: 'react without a limit',
      in: 'agents/react',
      swap: ['maxSteps = Infinity', 'maxSteps = 50'],
    },
  ],
  'UAP-020': [
    {
      clause: 'a tool strategy without the field has no limit',
      in: 'agents/withoutLimit',
      swap: ['{ maxIterations: Infinity }', '{ maxIterations: 10 }'],
    },
  ],
  'UAP-021': [
    {
      clause: 'no time limit of our own, in generate',
      in: 'agents/generate',
      swap: [
        'return runAgent({ core, ...call, controller })',
        `setTimeout(() => controller.abort(), 600_000).unref()
  return runAgent({ core, ...call, controller })`,
      ],
    },
    {
      clause: 'nor in stream',
      in: 'agents/stream',
      swap: [
        'const controller = new AbortController()',
        `const controller = new AbortController()
  setTimeout(() => controller.abort(), 600_000).unref()`,
      ],
    },
  ],
  'UAP-022': [
    {
      clause: 'maxIterations of loop holds',
      in: 'agents/loop',
      swap: ['run.steps >= maxIterations', 'run.steps > maxIterations'],
    },
    {
      clause: 'maxSteps of react holds',
      in: 'agents/react',
      swap: ['run.steps >= maxSteps', 'run.steps > maxSteps'],
    },
    {
      clause: 'the limit of the tool strategy holds',
      in: 'agents/StrategyRun.mayRunTools',
      swap: ['this.rounds <', 'this.rounds <='],
    },
    {
      clause: 'the stop condition holds',
      in: 'agents/StrategyRun.stops',
      swap: ['if (await this.#stopsAt()) return true', ''],
    },
  ],
  'UAP-023': [
    {
      clause: 'no toTool',
      in: 'agents/agent',
      swap: [
        'id: ids(),',
        `id: ids(),
    toTool: () => undefined,`,
      ],
    },
    {
      clause: 'subagent() names what is missing',
      in: 'agents/check',
      swap: [
        `...(typeof description === 'string' && description !== '' ? [] : ['description']),`,
        '',
      ],
    },
  ],
  'UAP-024': [
    {
      clause: 'an agent is no tool',
      in: 'agents/checkTools',
      swap: [
        `if (typeof tool?.name === 'string' && typeof tool.run === 'function') return`,
        `if (typeof tool?.name === 'string' || typeof tool?.generate === 'function') return`,
      ],
    },
  ],
  'UAP-025': [
    { clause: 'a UUIDv4', in: 'agents/agent', swap: ['id: ids(),', 'id: `a${ids()}`,'] },
    {
      clause: 'another one for each agent',
      in: 'agents/agent',
      swap: ['id: ids(),', `id: '11111111-1111-4111-8111-111111111111',`],
    },
  ],
  'UAP-026': [
    { clause: 'a UUIDv4', in: 'agents/AgentState.id', swap: ['this.#ids()', '`x${this.#ids()}`'] },
    {
      clause: 'another with every operation',
      in: 'agents/AgentState.next',
      swap: [
        '{ fields: { ...this.#fields, ...changes }, ids: this.#ids }',
        '{ id: this.id, fields: { ...this.#fields, ...changes }, ids: this.#ids }',
      ],
    },
  ],
  'UAP-027': [
    {
      clause: 'generated when a store is given',
      in: 'agents/AgentCore.sessionOf',
      swap: ['return checkpoints && (this.#sessionId ??= this.ids())', 'return undefined'],
    },
  ],
  'UAP-028': [
    {
      clause: 'generated ids are UUIDv4',
      in: 'agents/AgentCore.sessionOf',
      swap: ['(this.#sessionId ??= this.ids())', '(this.#sessionId ??= `s-${this.ids()}`)'],
    },
    {
      clause: 'a given one is kept',
      in: 'agents/AgentCore.sessionOf',
      swap: [
        'if (sessionId !== undefined) return sessionId',
        'if (sessionId !== undefined) return sessionId.toUpperCase()',
      ],
    },
  ],
  'UAP-029': [
    {
      clause: 'in the metadata of the state',
      in: 'agents/withOwner',
      swap: [
        'next.withMetadata(name, id)',
        `next.withMetadata(name === 'sessionId' ? 'session' : name, id)`,
      ],
    },
    {
      clause: 'also for a strategy of one’s own',
      in: 'agents/checkResult',
      swap: ['return state === result.state ? result : { ...result, state }', 'return result'],
    },
  ],
  'UAP-030': [
    {
      clause: 'another checkpointId with every save',
      in: 'agents/checkpointMetadata',
      swap: ['checkpointId: ids(),', `checkpointId: '11111111-1111-4111-8111-111111111111',`],
    },
    {
      clause: 'a UUIDv4',
      in: 'agents/checkpointMetadata',
      swap: ['checkpointId: ids(),', 'checkpointId: `c${ids()}`,'],
    },
  ],
  'UAP-031': [
    {
      clause: 'a whole number that grows',
      in: 'agents/StrategyRun.beginStep',
      swap: ['if (!goesOn) this.step++', 'if (!goesOn) this.step += 0.5'],
    },
  ],
  'UAP-032': [
    {
      clause: 'agentId',
      in: 'agents/Attempt.context',
      swap: [
        `agentId: agent.id,
`,
        '',
      ],
    },
    {
      clause: 'stateId',
      in: 'agents/agentContext',
      swap: [
        `stateId: state.id,
`,
        '',
      ],
    },
    {
      clause: 'parentContext',
      in: 'agents/agentContext',
      swap: [
        `    parentContext,
`,
        '',
      ],
    },
    {
      clause: 'sessionId',
      in: 'agents/agentContext',
      swap: [
        `    sessionId,
`,
        '',
      ],
    },
  ],
  'UAP-033': [
    {
      clause: 'UUIDv4',
      in: 'agents/ThreadTree.branch',
      swap: ['id: this.#ids(),', 'id: `n${this.#ids()}`,'],
    },
  ],
  'UAP-034': [
    {
      clause: 'another id for each run',
      in: 'agents/SubagentRun.constructor',
      swap: ['this.#waiting?.subagentId ?? this.#ids()', `this.#waiting?.subagentId ?? 'sub'`],
    },
  ],
  'UAP-035': [
    {
      clause: 'params reach the provider',
      in: 'agents/AgentCore.llm',
      swap: ['...this.options, model,', '...this.options, params: undefined, model,'],
    },
    {
      clause: 'system',
      in: 'agents/AgentCore.llm',
      swap: ['...this.options, model,', '...this.options, system: undefined, model,'],
    },
    {
      clause: 'structure',
      in: 'agents/AgentCore.llm',
      swap: ['...this.options, model,', '...this.options, structure: undefined, model,'],
    },
    {
      clause: 'config',
      in: 'agents/AgentCore.llm',
      swap: ['...this.options, model,', '...this.options, config: undefined, model,'],
    },
  ],
  'UAP-037': [
    {
      clause: 'loop is the default',
      in: 'agents/defaultExecution',
      swap: ['loop()', 'loop({ maxIterations: 1 })'],
    },
  ],
  'UAP-038': [
    {
      clause: 'an item that is no tool is refused',
      in: 'agents/checkTools',
      swap: [`typeof tool.run === 'function') return`, 'true) return'],
    },
  ],
  'UAP-039': [
    {
      clause: 'the object of the caller is not changed',
      in: 'agents/withoutLimit',
      swap: [
        'return boundHooks(strategy, toolHooks, { maxIterations: Infinity })',
        'return Object.assign(strategy, { maxIterations: Infinity })',
      ],
    },
    {
      clause: 'hooks keep their this',
      in: 'agents/boundHooks',
      swap: ['hook.bind(hooks)', 'hook'],
    },
  ],
  'UAP-040': [
    {
      clause: 'config is a member',
      in: 'agents/agent',
      swap: [
        'filter(([, value]) => value !== undefined)',
        `filter(([name, value]) => value !== undefined && name !== 'config')`,
      ],
    },
    {
      clause: 'ask is a member',
      in: 'agents/agentMethods',
      swap: ['query: (input', 'queries: (input'],
    },
  ],
  'UAP-041': [
    {
      clause: 'a message is used by identity',
      in: 'agents/AgentCore.toInput',
      swap: [
        `return 'text' in input ? input : messageFromJSON(input)`,
        'return new UserMessage(input.content as never, { ids, clock })',
      ],
    },
    {
      clause: 'text is not changed',
      in: 'agents/AgentCore.toInput',
      swap: [
        'return new UserMessage(input, { ids, clock })',
        'return new UserMessage(input.trim(), { ids, clock })',
      ],
    },
  ],
  'UAP-042': [
    {
      clause: 'the next request has the first exchange',
      in: 'agents/StrategyRun.note',
      swap: [
        'this.state = result.state',
        'this.state = result.state.withContext(result.state.messages.slice(-2))',
      ],
    },
  ],
  'UAP-043': [
    {
      clause: 'it returns at once',
      in: 'agents/agentMethods',
      swap: [
        `stream: (input: AgentInput, state: AgentState, options: RunOptions = {}) =>
      stream(core, { input, state, options }),`,
        `stream: (async (input: AgentInput, state: AgentState, options: RunOptions = {}) =>
      stream(core, { input, state, options })) as never,`,
      ],
    },
  ],
  'UAP-044': [
    {
      clause: 'the exchange is complete',
      in: 'agents/withExchange',
      swap: [
        'const start = known[0] ?',
        'if (!known[0]) return result\n  const start = known[0] ?',
      ],
    },
  ],
  'UAP-045': [
    {
      clause: 'no message twice',
      in: 'agents/withExchange',
      swap: ['return result\n', 'return { ...result, state: state.withMessages([input]) }\n'],
    },
    {
      clause: 'also under another id',
      in: 'agents/withExchange',
      swap: [
        'return result\n',
        `return { ...result, state: state.withMessages([Object.assign(Object.create(Object.getPrototypeOf(input) as object) as Message, input, { id: crypto.randomUUID() })]) }\n`,
      ],
    },
  ],
  'UAP-047': [
    {
      clause: 'a bare turn',
      in: 'agents/query',
      swap: [
        `return turn
}`,
        `return { ...turn, state: {} } as Turn
}`,
      ],
    },
  ],
  'UAP-048': [
    {
      clause: 'an empty state',
      in: 'agents/query',
      swap: ['AgentState.initial({ ids })', 'AgentState.initial({ ids }).withStep(1)'],
    },
  ],
  'UAP-049': [
    {
      clause: 'the messages of the turn, in order',
      in: 'agents/RunRecord.addMessages',
      swap: [
        'this.#messages.push(freezeTree(message))',
        'this.#messages.unshift(freezeTree(message))',
      ],
    },
  ],
  'UAP-050': [
    {
      clause: 'usage is the sum',
      in: 'agents/RunRecord.addInference',
      swap: ['this.usage = addUsage(this.usage, turn.usage)', 'this.usage = turn.usage'],
    },
    {
      clause: 'executions of all steps',
      in: 'agents/RunRecord.addExecutions',
      swap: ['this.#executions.push(execution)', 'this.#executions.splice(0, 1, execution)'],
    },
    {
      clause: 'cycles are counted',
      in: 'agents/RunRecord.since',
      swap: ['cycles: usageByCycle.length,', 'cycles: 1,'],
    },
  ],
  'UAP-051': [
    {
      clause: 'built-in strategies have both ways',
      in: 'agents/builtIn',
      swap: ['stream: (context: ExecutionContext) => open(context, run),', ''],
    },
    {
      clause: 'and a name',
      in: 'agents/builtIn',
      swap: [
        `    name,
`,
        `    name: 'strategy',
`,
      ],
    },
  ],
  'UAP-052': [
    {
      clause: 'agent is the agent',
      in: 'agents/Attempt.context',
      swap: [
        `    return {
      agent,
`,
        `    return {
      agent: { ...agent },
`,
      ],
    },
    {
      clause: 'input',
      in: 'agents/Attempt.context',
      swap: [
        `      input,
      state,
`,
        `      input: { ...input } as Message,
      state,
`,
      ],
    },
    { clause: 'signal', in: 'agents/Attempt.context', swap: ['signal: controller.signal,', ''] },
  ],
  'UAP-054': [
    {
      clause: 'a strategy of one’s own is called',
      in: 'agents/Attempt.run',
      swap: [
        'this.#executeForeign(context, saver)',
        'builtInRun(defaultExecution)!(context, this.#live)',
      ],
    },
  ],
  'UAP-056': [
    {
      clause: 'its state is saved',
      in: 'agents/Attempt.executeForeign',
      swap: ['if (this.#savedTraces < sink.traces.length) await saver?.save(state)', ''],
    },
    {
      clause: 'its hooks save',
      in: 'agents/savingHooks',
      swap: ['await save(adopted ?? result.state)', ''],
    },
  ],
  'UAP-057': [
    {
      clause: 'ends when no tool is called',
      in: 'agents/StrategyRun.endAfter',
      swap: [
        `turn && !turn.response.toolCalls?.length ? 'complete' : undefined`,
        `turn ? 'complete' : undefined`,
      ],
    },
  ],
  'UAP-058': [
    {
      clause: '0 runs no tool',
      in: 'agents/loop',
      swap: ['maxIterations > 0 && run.mayRunTools', 'run.mayRunTools'],
    },
    {
      clause: 'reaching it is no error',
      in: 'agents/loop',
      swap: [
        `const stop =`,
        `if (limit) throw new Error('limit')
      const stop =`,
      ],
    },
  ],
  'UAP-059': [
    {
      clause: 'a checkpoint per round',
      in: 'agents/StrategyRun.endStep',
      swap: [
        'const saving = this.context.checkpoint?.(this.state)',
        'const saving = stopReason ? this.context.checkpoint?.(this.state) : undefined',
      ],
    },
    {
      clause: 'hooks per round',
      in: 'agents/StrategyRun.beginStep',
      swap: [
        `await this.hook('onStepStart',`,
        `if (this.steps === 1) await this.hook('onStepStart',`,
      ],
    },
  ],
  'UAP-060': [
    {
      clause: 'a turn of UPP',
      in: 'agents/RunRecord.since',
      swap: [
        `      ...last,
`,
        '',
      ],
    },
  ],
  'UAP-061': [
    {
      clause: 'onReason',
      in: 'agents/reason',
      swap: [`await run.hook('onReason', run.step, reasoning)`, ''],
    },
    {
      clause: 'onAct before the calls',
      in: 'agents/act',
      swap: ['if (hooks?.onAct) await hooks.onAct(origin.step, batch.calls)', ''],
    },
    {
      clause: 'onObserve after them',
      in: 'agents/act',
      swap: ['if (hooks?.onObserve) await hooks.onObserve(origin.step, outcome.executions)', ''],
    },
  ],
  'UAP-062': [
    {
      clause: 'one entry per step',
      in: 'agents/reason',
      swap: [
        'run.state = run.state.withReasoning(reasoning)',
        'if (run.steps === 1) run.state = run.state.withReasoning(reasoning)',
      ],
    },
  ],
  'UAP-063': [
    {
      clause: 'after every step',
      in: 'agents/StrategyRun.isOver',
      swap: [
        `if (await this.#stops()) return 'stop_condition'`,
        `if (end && (await this.#stops())) return 'stop_condition'`,
      ],
    },
  ],
  'UAP-064': [
    {
      clause: 'no limit unless configured',
      in: 'agents/react',
      swap: ['maxSteps = Infinity', 'maxSteps = 50'],
    },
  ],
  'UAP-065': [
    {
      clause: 'maxSteps',
      in: 'agents/react',
      swap: ['run.steps >= maxSteps', 'run.steps > maxSteps'],
    },
  ],
  'UAP-066': [
    {
      clause: 'it replaces the prompt',
      in: 'agents/react',
      swap: [`run.prompt(reasoningPrompt, 'reason')`, `run.prompt(REASON, 'reason')`],
    },
  ],
  'UAP-067': [
    { clause: 'reason, then act', in: 'agents/react', swap: ['await reason(run, reasoner)', ''] },
  ],
  'UAP-068': [
    {
      clause: 'the stop condition',
      in: 'agents/StrategyRun.isOver',
      swap: [`if (await this.#stops()) return 'stop_condition'`, ''],
    },
  ],
  'UAP-069': [
    {
      clause: 'no tools are offered',
      in: 'agents/bareModel',
      swap: ['tools: [], ', ''],
    },
    {
      clause: 'no structure is asked for',
      in: 'agents/bareModel',
      swap: [' structure: undefined,', ''],
    },
    {
      clause: 'calls made while reasoning do not run',
      in: 'agents/reason',
      swap: ['await run.ask({ llm, runsTools: false })', 'await run.ask({ llm, runsTools: true })'],
    },
  ],
  'UAP-070': [
    {
      clause: 'results are in the next request',
      in: 'agents/CallBatch.end',
      swap: [
        'const messages = results ? [results] : []',
        'const messages: ToolResultMessage[] = []',
      ],
    },
  ],
  'UAP-071': [
    {
      clause: 'planning is structured',
      in: 'agents/plannerOf',
      swap: [
        '{ llm: bareModel(llm, { structure: schema }), read: ({ data }) => data }',
        '{ llm: bareModel(llm), read: readText }',
      ],
    },
  ],
  'UAP-072': [
    {
      clause: 'in topological order',
      in: 'agents/nextSteps',
      swap: ['return ready.slice(0, limit)', `return withStatus(steps, 'pending').slice(0, limit)`],
    },
  ],
  'UAP-073': [
    {
      clause: 'from planning on',
      in: 'agents/makePlan',
      swap: [
        'run.state = run.state.withPlan(joinPlans(ended, steps))',
        'run.state = run.state.withPlan(joinPlans(ended, []))',
      ],
    },
  ],
  'UAP-074': [
    {
      clause: 'in_progress',
      in: 'agents/carryOut',
      swap: [`if (isNew) for (const step of steps) setStatus(run, step, 'in_progress')`, ''],
    },
    {
      clause: 'failed',
      in: 'agents/carryOut',
      swap: [`failed.includes(step) ? 'failed' : 'completed'`, `'completed'`],
    },
  ],
  'UAP-075': [
    {
      clause: 'the plan is cut',
      in: 'agents/makePlan',
      swap: ['cutPlan(proposal.steps, completed, settings.maxPlanSteps)', 'proposal.steps'],
    },
  ],
  'UAP-076': [
    {
      clause: 'a failed step leads to a new plan',
      in: 'agents/plan',
      swap: ['allowReplan = true', 'allowReplan = false'],
    },
    {
      clause: 'unless it is not allowed',
      in: 'agents/replan',
      swap: ['!settings.allowReplan || ', ''],
    },
  ],
  'UAP-077': [
    {
      clause: 'the schema given',
      in: 'agents/plan',
      swap: ['plannerOf(llm, planSchema)', 'plannerOf(llm, defaultPlanSchema)'],
    },
  ],
  'UAP-079': [
    {
      clause: 'problems are not passed over',
      in: 'agents/makePlan',
      swap: [
        `if (proposal.problems.length > 0)
    throw`,
        `if (proposal.problems.length > 9)
    throw`,
      ],
    },
  ],
  'UAP-080': [
    { clause: 'step 0', in: 'agents/empty', swap: ['step: 0,', 'step: 1,'] },
    {
      clause: 'reasoning is empty',
      in: 'agents/empty',
      swap: ['reasoning: SharedList.of<string>([]),', `reasoning: SharedList.of<string>(['']),`],
    },
  ],
  'UAP-081': [
    {
      clause: 'appends one',
      in: 'agents/AgentState.withMessage',
      swap: ['this.withMessages([message])', 'this.withContext([message])'],
    },
  ],
  'UAP-082': [
    {
      clause: 'appends many',
      in: 'agents/AgentState.withMessages',
      swap: [
        'this.#fields.messages.append(checked(messages))',
        'this.#fields.messages.append(checked(messages.slice(0, 1)))',
      ],
    },
  ],
  'UAP-083': [
    {
      clause: 'replaces the history',
      in: 'agents/AgentState.withContext',
      swap: ['SharedList.of(checked(messages))', 'this.#fields.messages.append(checked(messages))'],
    },
    {
      clause: 'keeps the rest',
      in: 'agents/AgentState.withContext',
      swap: [
        'this.#next({ messages:',
        'this.#next({ reasoning: SharedList.of<string>([]), messages:',
      ],
    },
  ],
  'UAP-084': [
    {
      clause: 'withStep',
      in: 'agents/AgentState.withStep',
      swap: ['return this.#next({ step })', 'return this.#next({ step: step + 1 })'],
    },
    {
      clause: 'withMetadata',
      in: 'agents/AgentState.withMetadata',
      swap: [
        'withEntry(this.metadata, name, value as JsonValue | undefined)',
        'withEntry({}, name, value as JsonValue | undefined)',
      ],
    },
    {
      clause: 'withReasoning',
      in: 'agents/AgentState.withReasoning',
      swap: ['this.#fields.reasoning.append([reasoning])', 'SharedList.of([reasoning])'],
    },
    {
      clause: 'withPlan',
      in: 'agents/AgentState.withPlan',
      swap: ['frozenData(plan)', 'frozenData([...(this.plan ?? []), ...plan])'],
    },
  ],
  'UAP-085': [
    {
      clause: 'appends',
      in: 'agents/AgentState.withSubagentTrace',
      swap: [
        'this.#fields.subagentTraces.append([frozenData(trace)])',
        'SharedList.of([frozenData(trace)])',
      ],
    },
  ],
  'UAP-086': [
    {
      clause: 'the original stays',
      in: 'agents/SharedList.append',
      swap: ['isNewest ? this.#items : this.#items.slice(0, this.length)', 'this.#items'],
    },
  ],
  'UAP-087': [
    {
      clause: 'unique',
      in: 'agents/AgentState.id',
      swap: ['(this.#id ??= this.#ids())', '(this.#id ??= this.#ids().slice(0, 3))'],
    },
  ],
  'UAP-088': [
    {
      clause: 'what JSON cannot say fails',
      in: 'agents/writeStateJSON',
      swap: ['if (part) checkJson(part, path)', ''],
    },
    {
      clause: 'the plan is in it',
      in: 'agents/writeStateJSON',
      swap: ['if (plan) json.plan = plan', ''],
    },
  ],
  'UAP-089': [
    {
      clause: 'step',
      in: 'agents/readStateJSON',
      swap: ['step,\n    metadata: frozenData', 'step: 0,\n    metadata: frozenData'],
    },
    {
      clause: 'metadata',
      in: 'agents/readStateJSON',
      swap: ['metadata: frozenData(metadata),', 'metadata: {},'],
    },
    {
      clause: 'reasoning',
      in: 'agents/readStateJSON',
      swap: ['reasoning,\n    plan: plan', 'reasoning: [],\n    plan: plan'],
    },
    {
      clause: 'id',
      in: 'agents/AgentState.fromJSON',
      swap: ['new AgentState(key, { id, fields, ids })', 'new AgentState(key, { fields, ids })'],
    },
  ],
  'UAP-090': [
    {
      clause: 'what middleware makes of the state is sent',
      in: 'agents/runAgent',
      swap: [
        'await attempt.run(asked, checkState(given))',
        'await attempt.run(asked, given === state ? given : state)',
      ],
    },
  ],
  'UAP-093': [
    {
      clause: 'current is the root at first',
      in: 'agents/ThreadTree.constructor',
      swap: [
        'this.#root = this.#current = this.#add(new ThreadNode({ id: ids(), parentId: null, state }))',
        `this.#root = this.#add(new ThreadNode({ id: ids(), parentId: null, state }))
    this.#current = this.#add(new ThreadNode({ id: ids(), parentId: this.#root.id, state }))`,
      ],
    },
  ],
  'UAP-094': [
    {
      clause: 'does not switch',
      in: 'agents/ThreadTree.branch',
      swap: [
        'return this.#add(new ThreadNode({ id: this.#ids(), parentId: fromId, state, name })).id',
        'return (this.#current = this.#add(new ThreadNode({ id: this.#ids(), parentId: fromId, state, name }))).id',
      ],
    },
    {
      clause: 'registers the child',
      in: 'agents/ThreadTree.add',
      swap: ['if (node.parentId !== null) ThreadNode.link(this.#node(node.parentId), node.id)', ''],
    },
  ],
  'UAP-095': [
    {
      clause: 'switches',
      in: 'agents/ThreadTree.checkout',
      swap: ['this.#current = this.#node(nodeId)', 'this.#node(nodeId)'],
    },
    {
      clause: 'an unknown id throws',
      in: 'agents/ThreadTree.node',
      swap: [
        "throw invalidUse(`The tree has no node ${JSON.stringify(id)}.`, 'See `tree.nodes`.')",
        'return this.#root',
      ],
    },
  ],
  'UAP-096': [
    {
      clause: 'from the root on',
      in: 'agents/ThreadTree.history',
      swap: [': [...before, ...node.state.messages]', ': node.state.messages'],
    },
    {
      clause: 'no message twice',
      in: 'agents/ThreadTree.history',
      swap: [
        'const continues = node.state.messages.some(({ id }) => ids.has(id))',
        'const continues = false && ids.size > 0',
      ],
    },
  ],
  'UAP-098': [
    {
      clause: 'name',
      in: 'agents/ThreadNode.constructor',
      swap: ['if (init.name !== undefined) this.name = init.name', ''],
    },
  ],
  'UAP-099': [
    {
      clause: 'current comes back',
      in: 'agents/ThreadTree.fromJSON',
      swap: ['tree.#current = current', 'tree.#current = root'],
    },
    {
      clause: 'rootId',
      in: 'agents/ThreadTree.toJSON',
      swap: ['rootId: this.#root.id', 'rootId: this.#current.id'],
    },
  ],
  'UAP-100': [
    {
      clause: 'tools with a second parameter get the context',
      in: 'agents/runCalls',
      swap: [
        'const own = { ...input.context?.(call, state), ...context, onSubagentEvent: sink.push }',
        'const own = { ...context, onSubagentEvent: sink.push }',
      ],
    },
  ],
  'UAP-102': [
    { clause: 'parentModel', in: 'agents/agentContext', swap: ['parentModel: agent.model,', ''] },
    {
      clause: 'parentConfig',
      in: 'agents/agentContext',
      swap: ['parentConfig: agent.config,', ''],
    },
    {
      clause: 'onSubagentEvent',
      in: 'agents/runCalls',
      swap: [', onSubagentEvent: sink.push }', ' }'],
    },
  ],
  'UAP-103': [
    {
      clause: 'its own model',
      in: 'agents/SubagentRun.effectiveAgent',
      swap: [
        'if (agent.model) return agent as Agent',
        'if (agent.model && !this.#context.parentModel) return agent as Agent',
      ],
    },
  ],
  'UAP-104': [
    {
      clause: 'the config of the caller',
      in: 'agents/SubagentRun.effectiveAgent',
      swap: ['config: agent.config ?? parentConfig', 'config: agent.config'],
    },
  ],
  'UAP-105': [
    {
      clause: 'the model of the caller at hand',
      in: 'agents/SubagentRun.effectiveAgent',
      swap: [
        'const { parentModel: model, parentConfig } = this.#context',
        'const { parentModel: model, parentConfig } = ((globalThis as { first?: AgentContext }).first ??= this.#context)',
      ],
    },
  ],
  'UAP-107': [
    {
      clause: 'dependencies of earlier rounds count',
      in: 'agents/StrategyRun.note',
      swap: [
        'if (!isError) this.#succeeded?.add(toolName)',
        'if (isError) this.#succeeded?.add(toolName)',
      ],
    },
  ],
  'UAP-111': [
    {
      clause: 'events reach the parent’s stream',
      in: 'agents/SubagentSink.constructor',
      swap: ['this.#forward = forward', 'this.#forward = undefined'],
    },
  ],
  'UAP-112': [
    {
      clause: 'subagentId',
      in: 'agents/SubagentRun.follow',
      swap: ['...this.#identity, innerEvent', `...this.#identity, subagentId: '', innerEvent`],
    },
  ],
  'UAP-113': [
    {
      clause: 'the id of the call',
      in: 'agents/SubagentRun.constructor',
      swap: ['parentToolCallId: toolCallId,', 'parentToolCallId: definition.name,'],
    },
  ],
  'UAP-114': [
    {
      clause: 'start comes first',
      in: 'agents/SubagentRun.run',
      swap: [
        `await this.#emit({ type: 'subagent_start', ...this.#identity, prompt, timestamp })
    let result: GenerateResult
    try {
      result = await this.#runAgent(agent, asked ?? '', before)`,
        `let result: GenerateResult
    try {
      result = await this.#runAgent(agent, asked ?? '', before)
      await this.#emit({ type: 'subagent_start', ...this.#identity, prompt, timestamp })`,
      ],
    },
  ],
  'UAP-115': [
    {
      clause: 'after a failure',
      in: 'agents/SubagentRun.run',
      swap: [
        'await this.#end({ success: false, error: messageOf(error), ...facts })',
        'void facts',
      ],
    },
    {
      clause: 'after an abort',
      in: 'agents/SubagentSink.close',
      swap: [
        `void this.push({ ...identity, type: 'subagent_end', success: false, error, timestamp })`,
        '',
      ],
    },
  ],
  'UAP-116': [
    {
      clause: 'inner events are forwarded',
      in: 'agents/SubagentRun.follow',
      swap: [
        `await this.#emit({ type: 'subagent_event', ...this.#identity, innerEvent })`,
        `if (innerEvent.source === 'uap') await this.#emit({ type: 'subagent_event', ...this.#identity, innerEvent })`,
      ],
    },
  ],
  'UAP-117': [
    { clause: 'end has usage', in: 'agents/record', swap: ['usage: turn?.usage }', '}'] },
    {
      clause: 'start has the prompt',
      in: 'agents/SubagentRun.run',
      swap: [
        `...this.#identity, prompt, timestamp })
    let`,
        `...this.#identity, prompt: '', timestamp })
    let`,
      ],
    },
  ],
  'UAP-118': [
    {
      clause: 'a hand-written tool may report',
      in: 'agents/SubagentSink.push',
      swap: [
        'return this.#forward?.(event)',
        `return event.type === 'subagent_event' ? this.#forward?.(event) : undefined`,
      ],
    },
  ],
  'UAP-119': [
    {
      clause: 'the tool runs the agent',
      in: 'agents/SubagentRun.finish',
      swap: ['return this.#definition.result?.(result) ?? text', `return ''`],
    },
  ],
  'UAP-121': [
    { clause: 'in the state', in: 'agents/act', swap: ['next.withSubagentTrace(one)', 'next'] },
  ],
  'UAP-122': [
    {
      clause: 'in its JSON',
      in: 'agents/writeStateJSON',
      swap: ['if (subagentTraces.length > 0) json.subagentTraces = subagentTraces', ''],
    },
  ],
  'UAP-123': [
    {
      clause: 'when subagent_end is reported',
      in: 'agents/SubagentSink.end',
      swap: ['this.traces.push(trace)', 'if (success) this.traces.push(trace)'],
    },
  ],
  'UAP-124': [
    {
      clause: 'all executions',
      in: 'agents/SubagentSink.end',
      swap: [
        'end.toolExecutions?.map(toToolTrace)',
        'end.toolExecutions?.slice(0, 1).map(toToolTrace)',
      ],
    },
  ],
  'UAP-125': [
    {
      clause: 'in checkpoints',
      in: 'agents/act',
      swap: ['return { ...outcome, state: traced }', 'return outcome'],
    },
  ],
  'UAP-126': [
    {
      clause: 'they are restored',
      in: 'agents/readStateJSON',
      swap: [
        'subagentTraces: subagentTraces.map((trace) => frozenData(trace)),',
        'subagentTraces: [],',
      ],
    },
  ],
  'UAP-127': [
    {
      clause: 'duration',
      in: 'agents/toToolTrace',
      swap: ['isError, duration }\n', 'isError }\n'],
    },
    {
      clause: 'arguments',
      in: 'agents/toToolTrace',
      swap: ['arguments: args, result: textOf', 'arguments: {}, result: textOf'],
    },
    {
      clause: 'results are text, without loss',
      in: 'agents/toToolTrace',
      swap: ['textOf(result)', 'String(result)'],
    },
    {
      clause: 'endTime',
      in: 'agents/SubagentSink.end',
      swap: ['endTime: end.timestamp,', 'endTime: 0,'],
    },
  ],
  'UAP-129': [
    {
      clause: 'isolated',
      in: 'agents/runAgent',
      swap: [
        'const metadata = middlewareMetadata(options.metadata)',
        'const metadata = ((globalThis as { shared?: ReturnType<typeof middlewareMetadata> }).shared ??= middlewareMetadata(options.metadata))',
      ],
    },
    {
      clause: 'properties are entries',
      in: 'agents/middlewareMetadata',
      swap: [
        `typeof name === 'string' && Boolean(target.set(name, value))`,
        'Reflect.set(target, name, value)',
      ],
    },
  ],
  'UAP-130': [
    {
      clause: 'after in reverse',
      in: 'agents/MiddlewareChain.after',
      swap: ['this.#started.toReversed()', '[...this.#started]'],
    },
    {
      clause: 'before in order',
      in: 'agents/MiddlewareChain.before',
      swap: ['for (const one of middleware) {', 'for (const one of middleware.toReversed()) {'],
    },
  ],
  'UAP-131': [
    {
      clause: 'before may replace',
      in: 'agents/MiddlewareChain.before',
      swap: ['if (changed) this.context = level.context = changed', ''],
    },
  ],
  'UAP-132': [
    {
      clause: 'after may replace',
      in: 'agents/MiddlewareChain.afterOf',
      swap: ['{ result: changed ?? result }', '{ result }'],
    },
  ],
  'UAP-133': [
    {
      clause: 'onError may recover',
      in: 'agents/MiddlewareChain.recover',
      swap: ['return result && !isOver ? { result } : { error }', 'return { error }'],
    },
    {
      clause: 'it sees its own context',
      in: 'agents/MiddlewareChain.after',
      swap: [
        'await this.#recover(one, context, current.error)',
        'await this.#recover(one, this.#context, current.error)',
      ],
    },
  ],
  'UAP-134': [
    {
      clause: 'for streams as well',
      in: 'agents/runAgent',
      swap: [
        'await middleware.before(core.options.middleware ?? [])',
        'if (!task.live) await middleware.before(core.options.middleware ?? [])',
      ],
    },
  ],
  'UAP-135': [
    {
      clause: 'level',
      in: 'agents/logging',
      swap: ['if (levels.indexOf(at) < lowest) return', ''],
    },
    {
      clause: 'info by default',
      in: 'agents/logging',
      swap: [`level = 'info'`, `level = 'debug'`],
    },
    {
      clause: 'messages only when asked',
      in: 'agents/logging',
      swap: [`if (!options.includeMessages) return { text: '', details: {} }`, ''],
    },
    {
      clause: 'timing',
      in: 'agents/logging',
      swap: [
        'if (options.includeTiming === false || startedAt === undefined)',
        'if (startedAt === undefined)',
      ],
    },
  ],
  'UAP-136': [
    {
      clause: 'all of the pipeline runs',
      in: 'agents/MiddlewareChain.before',
      swap: ['if (!one.before) continue', 'continue'],
    },
  ],
  'UAP-137': [
    {
      clause: 'a true condition stops',
      in: 'agents/StrategyRun.stopsAt',
      swap: ['return stops === true', 'return false'],
    },
  ],
  'UAP-138': [
    {
      clause: 'onStepEnd has the turn of the step',
      in: 'agents/StrategyRun.endStep',
      swap: [
        'const turn = this.record.stepTurn(this.#lastAnswer())',
        'const turn = this.record.turn(this.#lastAnswer())',
      ],
    },
    {
      clause: 'onStepStart has the number',
      in: 'agents/StrategyRun.beginStep',
      swap: [
        `this.hook('onStepStart', this.step, this.state)`,
        `this.hook('onStepStart', this.step - 1, this.state)`,
      ],
    },
  ],
  'UAP-139': [
    {
      clause: 'onObserve gets the observations',
      in: 'agents/act',
      swap: [
        'hooks.onObserve(origin.step, outcome.executions)',
        'hooks.onObserve(origin.step, [])',
      ],
    },
    {
      clause: 'onAct gets the calls',
      in: 'agents/act',
      swap: ['hooks.onAct(origin.step, batch.calls)', 'hooks.onAct(origin.step, [])'],
    },
  ],
  'UAP-140': [
    {
      clause: 'once',
      in: 'agents/Attempt.complete',
      swap: [
        `this.#isComplete = true
    await`,
        `await this.#hook('onComplete', () => this.#hooks.onComplete?.(result))
    this.#isComplete = true
    await`,
      ],
    },
    {
      clause: 'the result that is returned',
      in: 'agents/Attempt.complete',
      swap: ['this.#hooks.onComplete?.(result)', 'this.#hooks.onComplete?.({ ...result })'],
    },
  ],
  'UAP-141': [
    {
      clause: 'on an error',
      in: 'agents/Attempt.recover',
      swap: [
        `await this.#hook('onError', () => this.#hooks.onError?.(error, this.#state))`,
        'undefined as GenerateResult | undefined',
      ],
    },
    {
      clause: 'a result recovers',
      in: 'agents/Attempt.recover',
      swap: ['return { result }', 'return { error }'],
    },
  ],
  'UAP-144': [
    {
      clause: 'with the number of rounds',
      in: 'agents/StrategyRun.endAtLimit',
      swap: ['toolStrategy?.onMaxIterations?.(this.rounds)', 'toolStrategy?.onMaxIterations?.(0)'],
    },
  ],
  'UAP-145': [
    {
      clause: 'source says which',
      in: 'agents/toAgentEvent',
      swap: [`{ source: 'upp', upp }`, `{ source: 'uap', upp } as never`],
    },
  ],
  'UAP-146': [
    {
      clause: 'agentId',
      in: 'agents/uapEvent',
      swap: ['uap: { type, step, agentId, data } as never', 'uap: { type, step, data } as never'],
    },
    {
      clause: 'step',
      in: 'agents/uapEvent',
      swap: [
        'uap: { type, step, agentId, data } as never',
        'uap: { type, step: 0, agentId, data } as never',
      ],
    },
  ],
  'UAP-147': [
    {
      clause: 'the original event',
      in: 'agents/toAgentEvent',
      swap: [
        `{ source: 'upp', upp }`,
        `{ source: 'upp', upp: { ...upp, seen: true } as StreamEvent }`,
      ],
    },
  ],
  'UAP-148': [
    {
      clause: 'step_end closes every step',
      in: 'agents/StrategyRun.endStep',
      swap: [
        `await this.emit('step_end', stopReason ? { usage, stopReason } : { usage })`,
        `if (!stopReason) await this.emit('step_end', { usage })`,
      ],
    },
    {
      clause: 'action is inside',
      in: 'agents/act',
      swap: [
        `if (live) await live.emit([uapEvent(origin, 'action', { toolCalls: batch.calls })])`,
        '',
      ],
    },
  ],
  'UAP-149': [
    {
      clause: 'the messages of all steps',
      in: 'agents/StrategyRun.note',
      swap: [
        'this.state = result.state',
        'this.state = this.#live ? this.state.withMessages(result.messages.slice(0, 1)) : result.state',
      ],
    },
  ],
  'UAP-150': [
    {
      clause: 'as generate',
      in: 'agents/StrategyRun.note',
      swap: [
        'this.state = result.state',
        `this.state = this.#live ? result.state.withMetadata('live', true) : result.state`,
      ],
    },
  ],
  'UAP-151': [
    {
      clause: 'abort cancels',
      in: 'agents/AgentStream.abort',
      swap: ['this.#reader.abort(reason)', ''],
    },
  ],
  'UAP-152': [
    {
      clause: 'it reaches the tools',
      in: 'agents/runCalls',
      swap: [
        'llm.executeTools({ ...task, signal, streaming, state: middlewareState })',
        'llm.executeTools({ ...task, streaming, state: middlewareState })',
      ],
    },
  ],
  'UAP-153': [
    {
      clause: 'reasoning is optional on reading',
      in: 'agents/stateRule',
      swap: [`'reasoning?': ['string'],`, `reasoning: ['string'],`],
    },
    {
      clause: 'version is written',
      in: 'agents/writeStateJSON',
      swap: ['version: UAP_VERSION,', ''],
    },
  ],
  'UAP-154': [
    {
      clause: 'ids of states',
      in: 'agents/AgentState.fromJSON',
      swap: ['new AgentState(key, { id, fields, ids })', 'new AgentState(key, { fields, ids })'],
    },
  ],
  'UAP-158': [
    {
      clause: 'the version is checked',
      in: 'agents/readStateJSON',
      swap: [`if (typeof version !== 'string' ||`, `if (typeof version !== 'string' &&`],
    },
  ],
  'UAP-160': [
    {
      clause: 'step',
      in: 'agents/checkpointMetadata',
      swap: [
        `    step,
`,
        `    step: 0,
`,
      ],
    },
    {
      clause: 'agentId',
      in: 'agents/checkpointMetadata',
      swap: [`agentId: typeof agentId === 'string' ? agentId : '',`, `agentId: '',`],
    },
  ],
  'UAP-161': [
    {
      clause: 'the names of the files',
      in: 'agents/METADATA',
      swap: [`'metadata.json'`, `'meta.json'`],
    },
    {
      clause: 'the default folder',
      in: 'agents/SessionFiles.constructor',
      swap: [`'.checkpoints'`, `'checkpoints'`],
    },
    {
      clause: 'no id leads out of it',
      in: 'agents/SessionFiles.folder',
      swap: ['toFolderName(sessionId)', 'sessionId'],
    },
  ],
  'UAP-162': [
    {
      clause: 'after each step_end',
      in: 'agents/StrategyRun.endStep',
      swap: [
        'const saving = this.context.checkpoint?.(this.state)',
        'const saving = stopReason ? this.context.checkpoint?.(this.state) : undefined',
      ],
    },
  ],
  'UAP-163': [
    {
      clause: 'an id is generated',
      in: 'agents/AgentCore.sessionOf',
      swap: ['return checkpoints && (this.#sessionId ??= this.ids())', `return checkpoints && ''`],
    },
  ],
  'UAP-164': [
    {
      clause: 'saving does not block',
      in: 'agents/checkpointer',
      swap: [`if (durability === 'sync') return saved`, 'return saved'],
    },
  ],
  'UAP-165': [
    {
      clause: 'it is in the checkpoint',
      in: 'agents/checkpointer',
      swap: [
        'const stamped = { ...json, metadata: { ...json.metadata, ...owner } }',
        `const { sessionId: _, ...others } = json.metadata
      const stamped = { ...json, metadata: others as typeof json.metadata }`,
      ],
    },
    {
      clause: 'it is found in a restored state',
      in: 'agents/AgentCore.sessionOf',
      swap: [`if (typeof known === 'string' && known !== '') return known`, ''],
    },
  ],
  'UAP-167': [
    {
      clause: 'never thrown',
      in: 'agents/checkpointer',
      swap: [
        `    } catch (error) {
      void reportError(onError, error, sessionId)
    }
  }
  /**`,
        `    } catch (error) {
      void reportError(onError, error, sessionId)
      throw error
    }
  }
  /**`,
      ],
    },
    { clause: 'logged', in: 'agents/reportError', swap: ['handler(error, sessionId)', ''] },
  ],
  'UAP-168': [
    {
      clause: 'a file is replaced at once',
      in: 'agents/writeWhole',
      swap: [
        'const temporary = `${file}.${unique}.tmp`',
        `const temporary = file + (unique === '' ? '' : '')`,
      ],
    },
    {
      clause: 'compressed',
      in: 'agents/SessionFiles.save',
      swap: ['const data = compress ? await gzip(this.#system, text) : text', 'const data = text'],
    },
  ],
  'UAP-169': [
    {
      clause: '__proto__ is dropped',
      in: 'agents/read',
      swap: [
        `if (item !== undefined && name !== '__proto__') object[name] = read(item, depth + 1)`,
        'if (item !== undefined) object[name] = read(item, depth + 1)',
      ],
    },
    {
      clause: 'the structure is checked',
      in: 'agents/stateRule',
      swap: ['metadata: anObject,', ''],
    },
  ],
  'UAP-003': [
    {
      clause: 'no value',
      in: 'agents/src/index.ts',
      swap: [
        `export { agent } from './agent.ts'`,
        `export { agent } from './agent.ts'
export { UserMessage } from '@skein/ai'`,
      ],
    },
    {
      clause: 'no type',
      in: 'agents/src/index.ts',
      swap: [
        `export { subagent } from './subagent.ts'`,
        `export { subagent } from './subagent.ts'
export type { Turn } from '@skein/ai'`,
      ],
    },
    {
      clause: 'in every entry',
      in: 'agents/src/mcp/index.ts',
      swap: [
        'export { mcpTools }',
        `export { llm } from '@skein/ai'
export { mcpTools }`,
      ],
    },
  ],
  'UAP-004': [
    {
      clause: 'the turn is the very type',
      in: 'agents/GenerateResult',
      swap: [
        'readonly turn: Turn<Data, Calls>',
        `readonly turn: Omit<Turn<Data, Calls>, 'cycles'>`,
      ],
    },
  ],
  'UAP-006': [
    {
      clause: 'an entry of its own',
      in: 'agents/package.json',
      swap: ['"./execution": {', '"./executions": {'],
    },
    {
      clause: 'main needs no file system',
      in: 'agents/src/index.ts',
      swap: [
        `export { agent } from './agent.ts'`,
        `export { agent } from './agent.ts'
export { fileCheckpoints } from './checkpoint/file-checkpoints-node.ts'`,
      ],
    },
  ],
  'UAP-007': [
    {
      clause: 'AgentState',
      in: 'agents/src/index.ts',
      swap: [
        `export { AgentState } from './state/state.ts'`,
        `export { AgentState as State } from './state/state.ts'`,
      ],
    },
  ],
  'UAP-008': [
    {
      clause: 'plan',
      in: 'agents/src/strategies/index.ts',
      swap: ['export { plan, type', 'export { plan as planned, type'],
    },
  ],
  'UAP-009': [
    {
      clause: 'logging',
      in: 'agents/src/middleware/index.ts',
      swap: ['export { logging, type', 'export { logging as log, type'],
    },
  ],
  'UAP-013': [
    {
      clause: 'the given state stays',
      in: 'agents/SharedList.view',
      swap: ['(this.#view ??= Object.freeze(this.#items.slice(0, this.length)))', 'this.#items'],
    },
  ],
  'UAP-014': [
    {
      clause: 'no message of another run',
      in: 'agents/runStep',
      swap: [
        'const { messages = state.messages } = input',
        'const messages = ((globalThis as { kept?: Message[] }).kept = [...((globalThis as { kept?: Message[] }).kept ?? []), ...(input.messages ?? state.messages)])',
      ],
    },
  ],
  'UAP-015': [
    {
      clause: 'two calls from one state are independent',
      in: 'agents/SharedList.append',
      swap: ['isNewest ? this.#items : this.#items.slice(0, this.length)', 'this.#items'],
    },
  ],
  'UAP-036': [
    {
      clause: 'the model is required',
      in: 'agents/AgentOptions',
      swap: ['readonly model: Model', 'readonly model?: Model'],
    },
  ],
  'UAP-046': [
    {
      clause: 'ask keeps the exchange',
      in: 'agents/withExchange',
      swap: [
        'const start = known[0] ?',
        'if (!known[0]) return result\n  const start = known[0] ?',
      ],
    },
  ],
  'UAP-053': [
    {
      clause: 'the state of the run',
      in: 'agents/StrategyRun.result',
      swap: [
        'const result = { turn, state: this.state, stopReason }',
        'const result = { turn, state: this.context.state, stopReason }',
      ],
    },
  ],
  'UAP-055': [
    {
      clause: 'input and answer once',
      in: 'agents/Attempt.executeForeign',
      swap: [
        'this.#withTraces(result.state)',
        'this.#withTraces(result.state.withMessages([context.input]))',
      ],
    },
  ],
  'UAP-078': [
    {
      clause: 'tool',
      in: 'agents/toStep',
      swap: [
        `tool: typeof tool === 'string' && tool !== '' ? tool : undefined,`,
        'tool: undefined,',
      ],
    },
  ],
  'UAP-091': [
    {
      clause: 'no tokenizer',
      in: 'agents/package.json',
      swap: [
        '"dependencies": {',
        `"dependencies": {
    "tiktoken": "1.0.0",`,
      ],
    },
  ],
  'UAP-092': [
    {
      clause: 'trees are there',
      in: 'agents/ThreadTree.history',
      swap: ['history(): AgentState {', 'histories(): AgentState {'],
    },
  ],
  'UAP-101': [
    {
      clause: 'the arguments alone',
      in: 'ai/tools/call/run',
      swap: [
        '(tool.run as (params: never) => unknown).call(tool, args)',
        '(tool.run as (...given: unknown[]) => unknown).call(tool, args, contextOf(call, signal, context))',
      ],
    },
  ],
  'UAP-106': [
    {
      clause: 'first, and alone',
      in: 'ai/Schedule.pick',
      swap: [
        'if (exclusive.length > 0 || this.#runsExclusive()) return this.#pickOrdered(exclusive, running)',
        'if (exclusive.length > 99) return this.#pickOrdered(exclusive, running)',
      ],
    },
  ],
  'UAP-109': [
    {
      clause: 'calls overlap',
      in: 'ai/Schedule.pickAll',
      swap: [
        `for (let position = 0; position < calls.length; position++) this.#begin(position)
    return calls.map((_, position) => position)`,
        `this.#begin(0)
    return [0]`,
      ],
    },
  ],
  'UAP-110': [
    {
      clause: 'a cycle runs one by one',
      in: 'ai/Schedule.pick',
      swap: [
        'if (this.#hasCycle) return running === 0 ? pending[0] : undefined',
        'if (this.#hasCycle) return pending[0]',
      ],
    },
  ],
  'UAP-120': [
    {
      clause: 'each event says where it stands',
      in: 'runtime/treeStream',
      swap: [
        'JSON.stringify({ threadId, path, id })',
        'JSON.stringify({ threadId, path: path.slice(-1), id })',
      ],
    },
  ],
  'UAP-128': [
    {
      clause: 'middleware may be async',
      in: 'agents/MiddlewareChain.call',
      swap: [
        'return await (isOver ? call() : awaitUnlessAborted(call(), this.#signal))',
        `void awaitUnlessAborted(call(), this.#signal)
      return undefined as T`,
      ],
    },
  ],
  'UAP-142': [
    {
      clause: 'onObserve after all tools',
      in: 'agents/act',
      swap: [
        'if (hooks?.onAct) await hooks.onAct(origin.step, batch.calls)',
        `if (hooks?.onAct) await hooks.onAct(origin.step, batch.calls)
  if (hooks?.onObserve) await hooks.onObserve(origin.step, [])`,
      ],
    },
  ],
  'UAP-143': [
    {
      clause: 'it does not run',
      in: 'ai/judge',
      swap: ['if (!proceeds) {', `if (!proceeds && requested.toolName === '') {`],
    },
  ],
  'UAP-155': [
    {
      clause: 'metadata of messages',
      in: 'ai/messageToJSON',
      swap: ['...(message.metadata && { metadata: message.metadata }),', ''],
    },
  ],
  'UAP-156': [
    {
      clause: 'ISO 8601',
      in: 'ai/messageToJSON',
      swap: ['.toISOString()', '.toUTCString()'],
    },
  ],
  'UAP-157': [
    {
      clause: 'base64',
      in: 'ai/toBytesJson',
      swap: ['{ $bytes: encodeBase64(value) }', '{ $bytes: [...value].join() }'],
    },
  ],
  'UAP-159': [
    {
      clause: 'list',
      in: 'agents/SessionFiles.list',
      swap: [
        'return ids.filter((id) => id !== undefined).sort()',
        'return ids.filter((id) => id !== undefined).slice(1)',
      ],
      by: 'file-checkpoints',
    },
  ],
  'UAP-166': [
    {
      clause: 'the messages are those of the live state',
      in: 'agents/readStateJSON',
      swap: [
        'messages: messages.map((one, at) => readMessage(one, `messages[${at}]`)),',
        'messages: messages.slice(-2).map((one, at) => readMessage(one, `messages[${at}]`)),',
      ],
      by: 'checkpoints.test',
    },
  ],
  'UAP-010': [
    {
      clause: 'fileCheckpoints',
      in: 'agents/src/checkpoint/index.ts',
      swap: ['export { fileCheckpoints, type', 'export { fileCheckpoints as files, type'],
    },
  ],
  'UAP-097': [
    {
      clause: 'only a state can be the state of a node',
      in: 'agents/thread-tree/checked',
      swap: ['if (state instanceof AgentState) return state', 'if (state) return state'],
    },
  ],
  'UAP-108': [
    {
      clause: 'after is kept',
      in: 'ai/Schedule.edges',
      swap: ['for (const id of call.after ?? []) edges.add(byId.get(id) ?? position)', ''],
    },
  ],
}
