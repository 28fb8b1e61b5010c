# Ends with a number that tells which way every branch went: for patches. Labels are the places.
    .intel_syntax noprefix
    .globl _start, again, choose, sum, hop, put, get, cell
    .text
_start:
    xor ebx, ebx
    mov ecx, 3
again:                          # three times
    add ebx, 1
    cmp ebx, 100
choose:                         # never taken
    je rare
    dec ecx
    jnz again
sum:
    add ebx, 10
    xor ecx, ecx
hop:                            # taken
    jrcxz put
    add ebx, 40
put:
    mov dword ptr [rip + cell], 20
get:
    add ebx, dword ptr [rip + cell]
    jmp done
rare:
    mov ebx, 77
done:
    mov edi, ebx                # 3 + 10 + 20
    mov eax, 60
    syscall
    .data
cell:
    .long 0
