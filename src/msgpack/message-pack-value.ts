/** What a MessagePack value can be here. Integers beyond 2^53 are bigints; maps keep their order and key types. */
export type MessagePackValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | MessagePackFloat
  | MessagePackExtension
  | readonly MessagePackValue[]
  | ReadonlyMap<MessagePackValue, MessagePackValue>
  | { readonly [key: string]: MessagePackValue };

/** A float that happens to be a whole number, so that it is not written as an integer. */
export class MessagePackFloat {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

/** An extension value: kept, not interpreted. */
export class MessagePackExtension {
  readonly type: number;
  readonly data: Uint8Array;
  constructor(type: number, data: Uint8Array) {
    this.type = type;
    this.data = data;
  }
}
