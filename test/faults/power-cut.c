/* Shuts down the ext4 file system of a folder like a power cut: data that is not on the disk yet is lost. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* FS_IOC_SHUTDOWN of linux/fs.h, which older headers do not define; 2 means without flushing the journal. */
#define SHUTDOWN _IOR('X', 125, uint32_t)
#define WITHOUT_FLUSHING 2

int main(int count, char **arguments) {
  if (count != 2) return 2;
  uint32_t how = WITHOUT_FLUSHING;
  int fd = open(arguments[1], O_RDONLY | O_DIRECTORY);
  if (fd >= 0 && ioctl(fd, SHUTDOWN, &how) == 0) return 0;
  perror(arguments[1]);
  return 1;
}
