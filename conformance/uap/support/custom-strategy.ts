import type { ExecutionContext, ExecutionStrategy } from '@skein/agents'

/** The protocol's own example of a strategy (UAP §5.5), with a stream that gives its one step. */
export function custom(look: (context: ExecutionContext) => void = () => {}): ExecutionStrategy {
  const execute: ExecutionStrategy['execute'] = async (context) => {
    look(context)
    const { llm, input, state, strategy } = context
    await strategy.onStepStart?.(1, state)
    const turn = await llm.generate(state.messages, input)
    const newState = state.withMessages(turn.messages)
    await strategy.onStepEnd?.(1, { turn, state: newState })
    return { turn, state: newState }
  }
  return {
    name: 'custom',
    execute,
    stream: (context) => {
      const result = execute(context)
      result.catch(() => {})
      return {
        result,
        abort: () => {},
        async *[Symbol.asyncIterator]() {
          await result
          yield {
            source: 'uap',
            uap: { type: 'step_start', step: 1, agentId: context.agent.id, data: {} },
          } as const
        },
      }
    },
  }
}
