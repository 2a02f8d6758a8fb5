import { activate } from '../actions/activate.ts'
import { bootChild } from '../actions/boot-child.ts'
import { cutTurn } from '../actions/cut-turn.ts'
import { settleInDoubt } from '../recovery/in-doubt.ts'
import { decideUndo } from '../actions/decide-undo.ts'
import { runEffect } from '../actions/run-effect.ts'
import { settleEffect } from '../actions/settle-effect.ts'
import { endStep } from '../actions/end-step.ts'
import { runStrategy } from '../actions/run-agent.ts'
import { runCalls } from '../calls/run-calls.ts'
import type { DrainContext } from '../context/drain-context.ts'
import { infer } from '../model/infer.ts'
import { beginSession } from '../actions/begin-session.ts'
import { cascade } from '../actions/cascade.ts'
import { close } from '../actions/close.ts'
import { endFailing } from '../actions/end-failing.ts'
import { expire } from '../actions/expire.ts'
import type { KernelAction } from '../state/kernel-action.ts'

/** An action that the loop performs; the others end its work. */
export type Performable = Exclude<KernelAction, { readonly type: 'park' | 'await_agent' }>

type ActionOf<Type extends Performable['type']> = Extract<Performable, { readonly type: Type }>

/**
 * What the loop does after an action: normally it asks `next` again; `look_later` means that the action only looked at
 * other threads and has to look again after a while.
 */
export type Performed = void | 'look_later'

interface Performer<Type extends Performable['type']> {
  readonly run: (context: DrainContext, action: ActionOf<Type>) => Promise<Performed>
  /** What the action works on, to compare it with other actions and to report it. */
  readonly subject?: (action: ActionOf<Type>) => string
}

/** The function of each action. */
const performers: { readonly [Type in Performable['type']]: Performer<Type> } = {
  cascade: {
    run: (context, { references }) => cascade(context, references),
    subject: ({ references }) => references.join(' '),
  },
  close: {
    run: (context, { outcome }) => close(context, outcome),
    subject: ({ outcome }) => outcome,
  },
  end_failing: {
    run: async (context) => ((await endFailing(context)) ? undefined : 'look_later'),
  },
  decide_undo: {
    run: (context, { interruptId }) => decideUndo(context, interruptId),
    subject: ({ interruptId }) => interruptId,
  },
  settle_in_doubt: {
    run: (context, { calls }) => settleInDoubt(context, calls),
    subject: ({ calls }) => calls.map(({ call }) => call.toolCallId).join(' '),
  },
  expire: {
    run: (context, { interruptId }) => expire(context, interruptId),
    subject: ({ interruptId }) => interruptId,
  },
  boot_child: {
    run: (context, { requestId }) => bootChild(context, requestId),
    subject: ({ requestId }) => requestId,
  },
  run_effect: {
    run: (context, { effectId }) => runEffect(context, effectId),
    subject: ({ effectId }) => effectId,
  },
  settle_effect: {
    run: (context, { effectId }) => settleEffect(context, effectId),
    subject: ({ effectId }) => effectId,
  },
  activate: { run: (context) => activate(context) },
  begin_session: {
    run: (context, { side }) => beginSession(context, side),
    subject: ({ side }) => side,
  },
  cut_turn: {
    run: (context, { side, drops }) => cutTurn(context, side, drops),
    subject: ({ side }) => side,
  },
  infer: {
    run: (context, { side }) => infer(context, side),
    subject: ({ side }) => side.side,
  },
  run_agent: {
    run: (context, { side }) => runStrategy(context, side),
    subject: ({ side }) => side.side,
  },
  run_calls: {
    run: (context, { side, entry }) => runCalls(context, side, entry),
    subject: ({ entry }) => entry.message.id,
  },
  end_step: {
    run: (context, { side, decision }) => endStep(context, side, decision),
    subject: ({ side, decision }) => `${side.side} ${decision.type}`,
  },
}

/** Performs an action. Each action ends with a commit. */
export function perform(context: DrainContext, action: Performable): Promise<Performed> {
  return performerOf(action).run(context, action)
}

/** Returns a text that names an action and what it works on, to compare and to report actions. */
export function nameOfAction(action: Performable): string {
  const subject = performerOf(action).subject?.(action)
  return subject === undefined ? action.type : `${action.type} ${subject}`
}

/** The table's row for an action takes that action; the compiler cannot tell for a union. */
function performerOf({ type }: Performable): Performer<never> & Performer<Performable['type']> {
  return performers[type] as Performer<never> & Performer<Performable['type']>
}
