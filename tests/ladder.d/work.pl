# Regular expressions, hashes, sorting, formats, pack, closures, local signals.
use strict; use warnings;
my (%count, %by_length);
open my $in, '<', $ARGV[0] or die; 
while (<$in>) { $count{lc $1}++ while /(\w+)/g; last if $. > 8000 }
$by_length{length $_}{$_} = $count{$_} for keys %count;
printf "%d %d %s\n", $_, scalar keys %{$by_length{$_}}, (sort keys %{$by_length{$_}})[0] for sort { $a <=> $b } keys %by_length;
my @top = (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 4];
print join(',', map { "$_=$count{$_}" } @top), "\n";
my @closures = map { my $n = $_; sub { $n * shift } } 1 .. 5;
print join(' ', map { $_->(7) } @closures), "\n";
print unpack('H*', pack('w n N q< d', 300, 1, 2, -3, 1.5)), "\n";
my $text = join '', 'a' .. 'z'; (my $other = $text) =~ tr/a-y/b-z/; print "$other\n";
local $SIG{__WARN__} = sub { print "warned: $_[0]" }; warn "careful\n";
eval { die { code => 42 } }; print "caught $@->{code}\n";
print sprintf('%.10f', atan2(1, 1) * 4), ' ', 2 ** 0.5, ' ', 10 % 3, "\n";
