import { useEffect, useLayoutEffect, useRef } from 'react'
import {
  INITIAL_INPUT,
  isInPlace,
  PALETTE,
  reduceInput,
  type PageInput,
  type InputState,
  type Reaction,
} from './input.ts'
import { createStore, type PageStore } from './store.ts'

/** What a key does here. */
export interface KeyBinding {
  /** A key, or two keys one after the other: `j`, `g i`, `?`. */
  readonly keys: string
  /** What the key does, for the list that `?` shows. */
  readonly does: string
  readonly run: () => void
}

/** The keys that work at the moment, the most recently bound first; `?` lists them. */
export const activeKeys: PageStore<readonly KeyBinding[]> = createStore<readonly KeyBinding[]>([])

/** The open dialogs, menus and the palette, from the moment in which they are asked for. */
export const overlays: PageStore<readonly string[]> = createStore<readonly string[]>([])

/** A button that decides about a call. */
export interface DecisionTarget {
  readonly element: HTMLElement
  /** The dialog or menu that contains it. */
  readonly overlay: string | undefined
  /** Whether it is the second confirmation of a call that cannot be undone. */
  readonly isConfirmation: boolean
  decide(): void
  /** A press came too soon; nothing was decided. */
  refuse(): void
  /** Whether a press would count now. */
  onReady(isReady: boolean): void
}

interface WatchedTarget extends DecisionTarget {
  rect: DOMRect | undefined
  isVisible: boolean
  isReady: boolean
}

let state: InputState = INITIAL_INPUT
let pointer: { readonly x: number; readonly y: number } | undefined
let runKeys: { readonly event: KeyboardEvent; readonly keys: string } | undefined
const targets = new Map<string, WatchedTarget>()

function send(input: PageInput): Reaction {
  const before = state
  const result = reduceInput(before, input)
  state = result.state
  if (state.overlays !== before.overlays) overlays.set(state.overlays)
  if (result.isFocusLost && document.activeElement instanceof HTMLElement)
    document.activeElement.blur()
  return result.reaction
}

/** Binds keys while the component is mounted. They do nothing while the person types or a dialog is open. */
export function useKeys(bindings: readonly KeyBinding[]): void {
  const latest = useRef(bindings)
  latest.current = bindings
  const names = bindings.map(({ keys, does }) => `${keys} ${does}`).join('\n')
  useEffect(() => {
    const bound = latest.current.map(({ keys, does }, index) => ({
      keys,
      does,
      run: () => latest.current[index]?.run(),
    }))
    activeKeys.set([...bound, ...activeKeys.get()])
    return () => activeKeys.set(activeKeys.get().filter((one) => !bound.includes(one)))
  }, [names])
}

/** While the component is mounted and `isOn`, the keys of the page are off: it is a dialog or a menu. */
export function useOverlay(name: string, isOn = true): void {
  useLayoutEffect(() => {
    if (!isOn) return
    openOverlay(name)
    return () => closeOverlay(name)
  }, [name, isOn])
}

export function openOverlay(name: string): void {
  send({ type: 'overlay_opened', name })
}

export function closeOverlay(name: string): void {
  send({ type: 'overlay_closed', name, at: performance.now() })
}

export function openPalette(): void {
  if (!state.overlays.includes(PALETTE)) openOverlay(PALETTE)
}

/** While the component is mounted and `isLoading`, keys are not keys of the page yet: something is still missing on it. */
export function useLoading(name: string, isLoading = true): void {
  useLayoutEffect(() => {
    if (!isLoading) return
    send({ type: 'hold', name })
    return () => void send({ type: 'release', name })
  }, [name, isLoading])
}

/** Returns the text that the person typed while the page was loading, once. */
export function takeTypedEarly(): string {
  const { typedEarly } = state
  send({ type: 'typed_early_taken' })
  return typedEarly
}

/** Watches a button that decides about a call. Returns the function that ends this. */
export function watchDecision(id: string, target: DecisionTarget): () => void {
  targets.set(id, { ...target, rect: undefined, isVisible: false, isReady: false })
  target.element.dataset['decision'] = id
  if (document.activeElement === target.element)
    send({ type: 'focused', button: id, at: performance.now() })
  if (targets.size === 1) requestAnimationFrame(watch)
  return () => {
    targets.delete(id)
    send({ type: 'removed', button: id })
  }
}

/** Whether the pointer was last seen above the element. */
export function isUnderPointer(element: Element): boolean {
  return pointer !== undefined && contains(element.getBoundingClientRect(), pointer)
}

/** Listens to keys and presses; the page does so once, before anything is rendered. */
export function listenToInput(): void {
  const options = { capture: true }
  addEventListener('keydown', onKeyDown, options)
  addEventListener('keyup', onKeyUp, options)
  addEventListener('pointerdown', onPointerDown, options)
  addEventListener('pointermove', onPointer, options)
  addEventListener('pointercancel', () => send({ type: 'press_cancelled' }), options)
  addEventListener('click', onClick, options)
  addEventListener('focusin', ({ target }) => onFocus(target), options)
  addEventListener('focusout', ({ relatedTarget }) => onFocus(relatedTarget), options)
  const onReturn = (): void => void send({ type: 'returned', at: performance.now() })
  addEventListener('focus', ({ target }) => target === window && onReturn())
  addEventListener('blur', ({ target }) => target === window && onReturn())
  document.addEventListener('visibilitychange', onReturn)
  // A key of the page runs last, unless the focused element has used it.
  document.addEventListener('keydown', (event) => {
    const keys = runKeys?.event === event ? runKeys.keys : undefined
    runKeys = undefined
    if (keys === undefined || event.defaultPrevented) return
    const binding = activeKeys.get().find((one) => one.keys === keys)
    if (!binding) return
    event.preventDefault()
    binding.run()
  })
}

function onKeyDown(event: KeyboardEvent): void {
  look()
  const { key, ctrlKey, metaKey, altKey, shiftKey, repeat: isRepeat, timeStamp: at } = event
  const button = decisionAt(event.target)
  const reaction = send({
    type: 'key',
    key,
    at,
    isRepeat,
    hasModifier: ctrlKey || metaKey || altKey,
    isPaletteKey: key.toLowerCase() === 'k' && (ctrlKey || metaKey) && !shiftKey && !altKey,
    target: button !== undefined ? 'decision' : kindOfTarget(event.target),
    button,
    bound: new Set(activeKeys.get().map(({ keys }) => keys)),
  })
  if (reaction.type === 'run') runKeys = { event, keys: reaction.keys }
  else if (reaction.type !== 'pass') {
    stop(event)
    react(reaction)
  }
}

/** Without this, the browser would click the button when Space is released. */
function onKeyUp(event: KeyboardEvent): void {
  if (event.key === ' ' && decisionAt(event.target) !== undefined) event.preventDefault()
}

function onPointerDown(event: PointerEvent): void {
  look()
  onPointer(event)
  const button = event.button === 0 ? decisionAt(event.target) : undefined
  react(send({ type: 'pressed', button, pointer: event.pointerId, at: event.timeStamp }))
}

function onPointer({ clientX: x, clientY: y }: PointerEvent): void {
  pointer = { x, y }
  for (const [id, { isConfirmation, rect }] of targets)
    if (isConfirmation && rect && !contains(rect, pointer))
      if (state.places.get(id)?.isUnderPointer) send({ type: 'pointer_left', button: id })
}

/** A click on a button that decides is never left to the browser. */
function onClick(event: MouseEvent): void {
  const button = decisionAt(event.target)
  if (button === undefined) return
  stop(event)
  look()
  const { pointerId: pointer } = event as Partial<PointerEvent> // some browsers send a mouse event
  // A click without a count comes from assistive technology or from a program.
  if (event.detail === 0) react(send({ type: 'activated', button, at: event.timeStamp }))
  else react(send({ type: 'clicked', button, pointer }))
}

function onFocus(target: EventTarget | null): void {
  send({ type: 'focused', button: decisionAt(target), at: performance.now() })
}

function react(reaction: Reaction): void {
  if (reaction.type === 'decide') targets.get(reaction.button)?.decide()
  else if (reaction.type === 'too_soon') targets.get(reaction.button)?.refuse()
  else if (reaction.type === 'focus') targets.get(reaction.button)?.element.focus()
}

function stop(event: Event): void {
  event.preventDefault()
  event.stopPropagation()
}

/** The id of the button that decides and contains the target. */
function decisionAt(target: EventTarget | null): string | undefined {
  if (!(target instanceof Element)) return undefined
  const id = target.closest<HTMLElement>('[data-decision]')?.dataset['decision']
  return id !== undefined && targets.has(id) ? id : undefined
}

function kindOfTarget(target: EventTarget | null): 'field' | 'control' | 'page' {
  if (!(target instanceof HTMLElement)) return 'page'
  if (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return 'field'
  return target.closest('a, button, summary, [role=button], [role=option]') ? 'control' : 'page'
}

let lookedAt = -Infinity
/** How often it is checked whether something covers a button that has not moved. */
const LOOK_MS = 100

function watch(): void {
  if (targets.size === 0) return
  look(performance.now() - lookedAt >= LOOK_MS)
  requestAnimationFrame(watch)
}

/** Compares the places of the buttons with those of the last look. */
function look(isThorough = true): void {
  const at = performance.now()
  if (isThorough) lookedAt = at
  for (const [id, target] of targets) {
    const { element, overlay, isConfirmation } = target
    const rect = element.getBoundingClientRect()
    const hasMoved = !target.rect || isElsewhere(rect, target.rect)
    const isVisible = isThorough || hasMoved ? isInView(element, rect) : target.isVisible
    if (!isVisible && target.isVisible) send({ type: 'covered', button: id })
    else if (isVisible && (hasMoved || !target.isVisible)) {
      const isUnder = isConfirmation && pointer !== undefined && contains(rect, pointer)
      send({ type: 'placed', button: id, at, overlay, isUnderPointer: isUnder })
    }
    // The place stays the one from which the time counts, so that slow moves add up.
    if (hasMoved) target.rect = rect
    target.isVisible = isVisible
    const isReady = isInPlace(state, id, at)
    if (isReady === target.isReady) continue
    target.isReady = isReady
    target.onReady(isReady)
  }
}

function isElsewhere(one: DOMRect, other: DOMRect): boolean {
  return (['left', 'top', 'right', 'bottom'] as const).some(
    (edge) => Math.abs(one[edge] - other[edge]) >= 1,
  )
}

/** How far inside its edges it is checked that a button is visible: its corners are round. */
const INSET_PX = 6

/** Whether the middle and the corners of the element are visible. */
function isInView(element: Element, { left, right, top, bottom }: DOMRect): boolean {
  const [x1, x2, y1, y2] = [left + INSET_PX, right - INSET_PX, top + INSET_PX, bottom - INSET_PX]
  const points = [
    [(left + right) / 2, (top + bottom) / 2],
    [x1, y1],
    [x2, y1],
    [x1, y2],
    [x2, y2],
  ] as const
  return points.every(([x, y]) => {
    const hit = document.elementFromPoint(x, y)
    return hit !== null && element.contains(hit)
  })
}

function contains(
  { left, right, top, bottom }: DOMRect,
  { x, y }: { readonly x: number; readonly y: number },
): boolean {
  return x >= left && x <= right && y >= top && y <= bottom
}
