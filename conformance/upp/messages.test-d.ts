import type { AssistantContent, AssistantMessage, UserContent } from '@skein/ai'
import { expectTypeOf, test } from 'vitest'

type Fields<T extends UserContent['type'] | AssistantContent['type']> = Omit<
  Extract<UserContent | AssistantContent, { type: T }>,
  'metadata'
>

interface Media<T extends string> {
  readonly type: T
  readonly data: Uint8Array
  readonly mimeType: string
}

test('UPP-069 the seven block types have exactly these fields', () => {
  expectTypeOf<Fields<'text'>>().toEqualTypeOf<{ readonly type: 'text'; readonly text: string }>()
  expectTypeOf<Fields<'reasoning'>>().toEqualTypeOf<{
    readonly type: 'reasoning'
    readonly text: string
  }>()
  expectTypeOf<Fields<'image'>>().toEqualTypeOf<{
    readonly type: 'image'
    readonly source:
      | { readonly type: 'base64'; readonly data: string }
      | { readonly type: 'url'; readonly url: string }
      | { readonly type: 'bytes'; readonly data: Uint8Array }
    readonly mimeType: string
  }>()
  expectTypeOf<Fields<'document'>>().toEqualTypeOf<{
    readonly type: 'document'
    readonly source:
      | { readonly type: 'base64'; readonly data: string }
      | { readonly type: 'url'; readonly url: string }
      | { readonly type: 'text'; readonly data: string }
    readonly mimeType: string
    readonly title?: string
  }>()
  expectTypeOf<Fields<'audio'>>().toEqualTypeOf<Media<'audio'>>()
  expectTypeOf<Fields<'video'>>().toEqualTypeOf<Media<'video'>>()
  expectTypeOf<Fields<'binary'>>().toEqualTypeOf<Media<'binary'>>()
})

test('UPP-070 binary blocks are user content only', () => {
  expectTypeOf<Extract<UserContent, { type: 'binary' }>>().not.toBeNever()
  expectTypeOf<Extract<AssistantContent, { type: 'binary' }>>().toBeNever()
  expectTypeOf<AssistantMessage['content'][number]>().toEqualTypeOf<AssistantContent>()
})
