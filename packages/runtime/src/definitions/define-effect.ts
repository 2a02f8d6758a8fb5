import { ToolArgumentError, type ToolSchema } from '@skein/ai'
import { argumentParserMember, isParsedBy, type JsonValue } from '@skein/base'
import { definedArguments } from './defined-arguments.ts'
import { DefinitionError } from './definition-error.ts'
import type { EffectContext, EffectDefinition } from './effect-definition.ts'
import type { ThreadState } from '../contract/thread-state.ts'

/** Options of `defineEffect`. */
export interface EffectOptions<Args> extends Omit<EffectDefinition, 'kind' | 'run' | 'probe'> {
  /** Any Standard Schema, checked before every run. Without it, arguments are any JSON. */
  readonly args?: ToolSchema<Args>
  readonly execute: (state: ThreadState, args: NoInfer<Args>, context: EffectContext) => unknown
  /** Finds out whether the effect happened, after a process died during it. It must not change anything. */
  readonly probe?: (
    args: NoInfer<Args>,
    context: EffectContext,
  ) => ReturnType<NonNullable<EffectDefinition['probe']>>
}

/**
 * Defines work for later (an effect), which a tool, a hook or a person schedules.
 *
 *     const remind = defineEffect({
 *       name: 'remind',
 *       args: z.object({ text: z.string() }),
 *       execute: (state, { text }) => state.queueMessage({ content: text }),
 *     })
 */
export function defineEffect<Args = JsonValue>(options: EffectOptions<Args>): EffectDefinition {
  const { args, execute, probe, ...rest } = options
  const subject = { kind: 'effect', name: options.name }
  // The definition has its code in `run`, so loading could not tell that the option was misnamed.
  if (execute === undefined && 'run' in options)
    throw new DefinitionError([
      {
        subject: `effect "${options.name}"`,
        field: 'run',
        message: 'is not a known field; write execute: (state, args) => …',
      },
    ])
  const parser = args && definedArguments(subject, args, { accepts: 'json' }).parser
  const read = async (given: JsonValue, context: EffectContext): Promise<Args> => {
    // Without a schema, Args is JSON. The arguments of a governed effect were parsed before it was judged.
    if (!args || !parser || isParsedBy(context, parser)) return given as Args
    const answer = await args['~standard'].validate(given)
    if (answer.issues) throw new ToolArgumentError(options.name, answer.issues)
    return answer.value
  }
  // Values that are not functions are kept, so that loading reports them together with all other problems.
  const run =
    typeof execute === 'function'
      ? async (state: ThreadState, given: JsonValue, context: EffectContext) =>
          execute(state, await read(given, context), context)
      : (execute as never)
  const look =
    typeof probe === 'function'
      ? async (given: JsonValue, context: EffectContext) =>
          probe(await read(given, context), context)
      : (probe as never)
  const definition = { ...rest, ...argumentParserMember(parser), kind: 'effect' as const, run }
  return Object.freeze(probe === undefined ? definition : { ...definition, probe: look })
}
