/**
 * What keys and presses may do on the page, as a pure state machine. A person reads a call before deciding about it,
 * so a decision is never a by-product of typing or of a click that was meant for something else:
 *
 * - Enter or Space decides only on a button that has had the focus for `SETTLE_MS` with no key in between. Any other key
 *   takes the focus away.
 * - A press decides only if it began and ended on the button, and the button had been in place for `SETTLE_MS`: visible,
 *   at the same position, for the same call.
 * - The keys of the page are off while a palette, a dialog or a menu is open or being opened, while the page is
 *   loading, and for the second key of a pair.
 */

/** How long a button must have been in place, or have had the focus, before it decides. */
export const SETTLE_MS = 700

/** How long after the first key of a pair (`g i`) the second one may follow. */
export const PAIR_MS = 1200

/** The name under which the palette is open. */
export const PALETTE = 'palette'

/** Where a button is that decides about a call. */
export interface ButtonPlace {
  /** Since when it has been visible at this position; undefined while it is covered or out of sight. */
  readonly since: number | undefined
  /** The dialog or menu that contains it; undefined for the page itself. */
  readonly overlay: string | undefined
  /**
   * Whether it appeared under the pointer, which has not left it since. Only buttons of a second confirmation
   * refuse presses in that case.
   */
  readonly isUnderPointer: boolean
}

export interface InputState {
  /** What the page still waits for before its keys work. */
  readonly holds: readonly string[]
  /** The text typed while the page was loading; the field that then receives the focus may take it. */
  readonly typedEarly: string
  /**
   * Whether the person has not paused since something that their keys were meant for: what they typed while the page
   * was loading, or a decision by key.
   */
  readonly isTypingOn: boolean
  readonly lastKeyAt: number
  /** The open dialogs, menus and the palette, the uppermost last. */
  readonly overlays: readonly string[]
  /** The first key of a pair whose second key has not come yet. */
  readonly pairKey: { readonly key: string; readonly at: number } | undefined
  readonly focus: { readonly button: string; readonly since: number } | undefined
  readonly press: { readonly button: string; readonly pointer: number } | undefined
  /** The buttons that decide about calls, by their ids. */
  readonly places: ReadonlyMap<string, ButtonPlace>
}

export const INITIAL_INPUT: InputState = {
  holds: [],
  typedEarly: '',
  isTypingOn: false,
  lastKeyAt: -Infinity,
  overlays: [],
  pairKey: undefined,
  focus: undefined,
  press: undefined,
  places: new Map(),
}

/** A key, as the browser reports it when it is pressed. */
export interface KeyInput {
  readonly type: 'key'
  readonly key: string
  readonly at: number
  readonly isRepeat: boolean
  /** Whether Control, Command or Alt is held. */
  readonly hasModifier: boolean
  /** Whether it is the key of the palette, Control-K or Command-K. */
  readonly isPaletteKey: boolean
  /** What has the focus: a field, a link or button, a button that decides, or nothing of these. */
  readonly target: 'field' | 'control' | 'decision' | 'page'
  /** The id of the button that decides, if that has the focus. */
  readonly button?: string
  /** The keys that the page has bound at the moment: `j`, `g i`. */
  readonly bound: ReadonlySet<string>
}

export type PageInput =
  | KeyInput
  | { readonly type: 'hold'; readonly name: string }
  | { readonly type: 'release'; readonly name: string }
  | { readonly type: 'typed_early_taken' }
  | { readonly type: 'overlay_opened'; readonly name: string }
  | { readonly type: 'overlay_closed'; readonly name: string; readonly at: number }
  | {
      /** The button has appeared, moved, become visible, or asks about another call now. */
      readonly type: 'placed'
      readonly button: string
      readonly at: number
      readonly overlay?: string
      readonly isUnderPointer?: boolean
    }
  | { readonly type: 'covered'; readonly button: string }
  | { readonly type: 'removed'; readonly button: string }
  | { readonly type: 'pointer_left'; readonly button: string }
  | { readonly type: 'focused'; readonly button?: string; readonly at: number }
  /** The window was hidden or in the background, so nothing on it has been in view. */
  | { readonly type: 'returned'; readonly at: number }
  | {
      readonly type: 'pressed'
      readonly button?: string
      readonly pointer: number
      readonly at: number
    }
  | { readonly type: 'press_cancelled' }
  | {
      readonly type: 'clicked'
      readonly button: string
      /** The mouse or finger; unknown where the browser reports clicks as plain mouse events. */
      readonly pointer?: number
    }
  /** Assistive technology activates the button, without a key or a pointer. */
  | { readonly type: 'activated'; readonly button: string; readonly at: number }

/** What the page does about an input. */
export type Reaction =
  /** The browser and the focused element handle it. */
  | { readonly type: 'pass' }
  /** Nothing happens. */
  | { readonly type: 'drop' }
  | { readonly type: 'run'; readonly keys: string }
  | { readonly type: 'decide'; readonly button: string }
  /** The button had not been in place, or in focus, for long enough. */
  | { readonly type: 'too_soon'; readonly button: string }
  | { readonly type: 'focus'; readonly button: string }

export interface InputStep {
  readonly state: InputState
  readonly reaction: Reaction
  /** Whether the focus is taken away from the button that decides. */
  readonly isFocusLost: boolean
}

const PASS: Reaction = { type: 'pass' }
const DROP: Reaction = { type: 'drop' }

/** The only place where it is decided what a key or a press does. */
export function reduceInput(state: InputState, input: PageInput): InputStep {
  switch (input.type) {
    case 'key':
      return onKey(state, input)
    case 'hold':
      return step({ ...state, holds: [...state.holds, input.name] })
    case 'release':
      return step(release(state, input.name))
    case 'typed_early_taken':
      return step({ ...state, typedEarly: '', isTypingOn: false })
    case 'overlay_opened':
      return step({
        ...state,
        overlays: [...state.overlays, input.name],
        pairKey: undefined,
        press: undefined,
      })
    case 'overlay_closed': {
      const last = state.overlays.lastIndexOf(input.name)
      const overlays = state.overlays.filter((_, index) => index !== last)
      return step({ ...settleAgain(state, input.at), overlays })
    }
    case 'placed': {
      const { button, at: since, overlay, isUnderPointer = false } = input
      return step(withPlace(state, button, { since, overlay, isUnderPointer }))
    }
    case 'covered': {
      const place = state.places.get(input.button)
      return step(place ? withPlace(state, input.button, { ...place, since: undefined }) : state)
    }
    case 'removed': {
      const places = new Map(state.places)
      places.delete(input.button)
      const isOf = (one: { readonly button: string } | undefined): boolean =>
        one?.button === input.button
      return step({
        ...state,
        places,
        focus: isOf(state.focus) ? undefined : state.focus,
        press: isOf(state.press) ? undefined : state.press,
      })
    }
    case 'pointer_left': {
      const { button } = input
      const place = state.places.get(button)
      if (!place) return step(state)
      return step(withPlace(state, button, { ...place, isUnderPointer: false }))
    }
    case 'focused': {
      const { button, at } = input
      if (button === undefined) return step({ ...state, focus: undefined })
      return step({ ...state, focus: { button, since: at }, pairKey: undefined })
    }
    case 'returned':
      return step(settleAgain(state, input.at))
    case 'pressed': {
      const { button, pointer, at } = input
      const next = { ...state, pairKey: undefined, press: undefined, typedEarly: '' }
      if (button === undefined) return step(next)
      if (!isInPlace(state, button, at) || state.places.get(button)?.isUnderPointer)
        return step(next, { type: 'too_soon', button })
      return step({ ...next, press: { button, pointer } })
    }
    case 'press_cancelled':
      return step({ ...state, press: undefined })
    case 'clicked': {
      const { button, pointer } = input
      const { press } = state
      const isSame = press?.button === button && (pointer ?? press.pointer) === press.pointer
      const next = { ...state, press: undefined }
      return step(next, isSame ? { type: 'decide', button } : DROP)
    }
    case 'activated': {
      const { button, at } = input
      if (hasSettledFocus(state, button, at))
        return step(withFocus(state, button, at), { type: 'decide', button })
      const isFocused = state.focus?.button === button
      return step(state, { type: isFocused ? 'too_soon' : 'focus', button })
    }
    default:
      return input satisfies never
  }
}

function step(state: InputState, reaction: Reaction = PASS, isFocusLost = false): InputStep {
  return { state, reaction, isFocusLost }
}

function onKey(before: InputState, input: KeyInput): InputStep {
  const { key, at, target, hasModifier, bound, isRepeat, button } = input
  const isPause = at - before.lastKeyAt >= SETTLE_MS
  const isTypingOn = before.isTypingOn && !isPause
  // A key between a press and its release means that the person does something else.
  const state: InputState = { ...before, lastKeyAt: at, isTypingOn, press: undefined }
  const isModifier = /^(?:Shift|Control|Alt|AltGraph|Meta|CapsLock|Fn)$/.test(key)

  // A button that decides has the focus.
  if (target === 'decision' && button !== undefined) {
    const isActivation = (key === 'Enter' || key === ' ') && !hasModifier
    if (isActivation) {
      const isDecided = !isRepeat && hasSettledFocus(state, button, at)
      // Presses that follow immediately belong to this one: they are no keys of the page that comes next.
      const next = { ...withFocus(state, button, at), isTypingOn: isDecided || isTypingOn }
      return step(next, { type: isDecided ? 'decide' : 'too_soon', button })
    }
    const { state: next, reaction } = onOtherKey({ ...state, focus: undefined }, input, isModifier)
    // Tab moves the focus by itself.
    return step(next, reaction, key !== 'Tab')
  }
  return onOtherKey(state, input, isModifier)

  function onOtherKey(state: InputState, input: KeyInput, isModifier: boolean): InputStep {
    if (isModifier) return step(state)
    if (input.isPaletteKey) return onPaletteKey(state, input)
    if (target === 'field') return step({ ...state, pairKey: undefined })
    if (hasModifier || state.overlays.length > 0) return step(state)
    const isText = [...key].length === 1
    if (state.holds.length > 0) {
      if (!isText && key !== 'Backspace') return step(state)
      const typed = state.typedEarly
      const typedEarly = isText ? typed + key : typed.slice(0, -1)
      return step({ ...state, typedEarly, isTypingOn: true }, DROP)
    }
    if (state.isTypingOn && (isText || key === 'Enter') && target === 'page')
      return step(state, DROP)

    // The second key of a pair is never a key of the page, however late it comes. It may be the first key again.
    const { pairKey } = state
    const isFirstOfPair = [...bound].some((keys) => keys.startsWith(`${key} `))
    if (pairKey !== undefined) {
      if (isRepeat && key === pairKey.key) return step(state, DROP)
      const keys = `${pairKey.key} ${key}`
      const isInTime = at - pairKey.at < PAIR_MS && bound.has(keys)
      const next = { ...state, pairKey: isFirstOfPair && !isInTime ? { key, at } : undefined }
      if (isInTime) return step(next, { type: 'run', keys })
      return step(next, isText || bound.has(key) ? DROP : PASS)
    }

    // Links and buttons have their own Enter and Space.
    if (target !== 'page' && (key === 'Enter' || key === ' ')) return step(state)
    // An Enter that is still held was meant for something else.
    if (isRepeat && key === 'Enter') return step(state, DROP)
    if (bound.has(key)) return step(state, { type: 'run', keys: key })
    return isFirstOfPair ? step({ ...state, pairKey: { key, at } }, DROP) : step(state)
  }
}

/** Opens or closes the palette, unless another dialog is open. */
function onPaletteKey(state: InputState, { at, isRepeat }: KeyInput): InputStep {
  const { overlays } = state
  if (isRepeat) return step(state, DROP)
  if (overlays.length === 0)
    return step({ ...state, overlays: [PALETTE], pairKey: undefined }, DROP)
  if (overlays.length === 1 && overlays[0] === PALETTE)
    return step({ ...settleAgain(state, at), overlays: [] }, DROP)
  return step(state, DROP)
}

function release(state: InputState, name: string): InputState {
  const last = state.holds.lastIndexOf(name)
  const holds = state.holds.filter((_, index) => index !== last)
  return { ...state, holds }
}

/** What was covered, or not in view, has to be in place for the whole time again. */
function settleAgain(state: InputState, at: number): InputState {
  const places = [...state.places].map(
    ([button, place]) =>
      [button, place.since === undefined ? place : { ...place, since: at }] as const,
  )
  const focus = state.focus && { ...state.focus, since: at }
  return { ...state, places: new Map(places), focus, press: undefined }
}

/** A press on a button that has moved or disappeared meanwhile does not count. */
function withPlace(state: InputState, button: string, place: ButtonPlace): InputState {
  const press = state.press?.button === button ? undefined : state.press
  return { ...state, press, places: new Map([...state.places, [button, place]]) }
}

function withFocus(state: InputState, button: string, since: number): InputState {
  return { ...state, focus: { button, since } }
}

/** Whether a press on the button counts: it has been visible at its position for long enough, and nothing is open above it. */
export function isInPlace(state: InputState, button: string, at: number): boolean {
  const place = state.places.get(button)
  return (
    place?.since !== undefined &&
    at - place.since >= SETTLE_MS &&
    place.overlay === state.overlays.at(-1)
  )
}

function hasSettledFocus(state: InputState, button: string, at: number): boolean {
  const { focus } = state
  return focus?.button === button && at - focus.since >= SETTLE_MS && isInPlace(state, button, at)
}
